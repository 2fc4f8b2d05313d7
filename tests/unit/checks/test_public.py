from __future__ import annotations

import subprocess
import sys

import pytest

from ci_agent_eval import checks
from ci_agent_eval.checks import Check, RequiredTools, as_check
from ci_agent_eval.errors import InputError
from tests.builders import episode
from tests.tables import each_row

HEAVY = (
    "jsonschema",
    "referencing",
    "pydantic_evals",
    "pydantic_ai",
    "opentelemetry",
    "tree_sitter",
)


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@each_row(
    "code",
    [
        "import ci_agent_eval.checks",
        "from ci_agent_eval.checks import RequiredTools, TrajectoryMatch, ReplyShape, Loops",
        "from ci_agent_eval.checks import Rubric; Rubric('x', 'openai:gpt-5-mini')",
        "from ci_agent_eval.checks import ReplyShape; ReplyShape(list[int])",
        "from ci_agent_eval.checks import as_check; as_check(object())",
        "from ci_agent_eval.checks import NoFullSuiteRun; NoFullSuiteRun()",
    ],
)
def test_nothing_heavy_comes_before_it_is_needed(code):
    assert loaded_after(code) == []


def test_a_schema_brings_jsonschema_and_nothing_else():
    code = "from ci_agent_eval.checks import ReplyShape; ReplyShape({})"
    assert loaded_after(code) == ["jsonschema", "referencing"]


def test_every_public_name_is_there():
    for name in checks.__all__:
        assert getattr(checks, name).__name__ == name
    assert set(checks.__all__) == set(checks._HOMES)
    with pytest.raises(AttributeError):
        checks.nothing  # noqa: B018 - it is the asking that is tested


def test_every_check_is_one():
    kinds = [getattr(checks, name) for name in checks.__all__ if name[0].isupper()]
    for kind in set(kinds) - {Check, checks.ScoringDimension}:
        assert callable(kind.assertions)
        assert kind.__dataclass_params__.frozen
        assert {"name", "severity"} <= kind.__dataclass_fields__.keys()


def test_what_is_a_check_already_stays_what_it_is():
    check = RequiredTools("x")
    assert as_check(check) is check
    assert as_check(RequiredTools) is None
    assert as_check(episode()) is None  # it has assertions, and looks at nothing


@each_row(
    ("missing", "ask", "extra"),
    [
        ("jsonschema", lambda: checks.ReplyShape({}), "checks"),
    ],
)
def test_a_missing_library_is_said_with_what_to_install(missing, ask, extra, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=rf"pip install 'ci-agent-eval\[{extra}\]'"):
        ask()
