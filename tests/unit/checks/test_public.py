from __future__ import annotations

import subprocess
import sys

import pytest

from ci_agent_eval import checks
from ci_agent_eval.checks import Check, RequiredTools, as_check
from ci_agent_eval.errors import InputError
from tests.builders import episode

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


LIGHT = """
from ci_agent_eval.checks import NoFullSuiteRun, ReplyShape, Rubric, TrajectoryMatch, as_check
Rubric("x", "openai:gpt-5-mini"), ReplyShape(list[int]), as_check(object()), NoFullSuiteRun()
"""


def test_nothing_heavy_comes_before_it_is_needed():
    assert loaded_after(LIGHT) == []
    assert loaded_after(f"{LIGHT}\nReplyShape({{}})") == ["jsonschema", "referencing"]


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


def test_a_missing_library_is_said_with_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "jsonschema"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(InputError, match=r"pip install 'ci-agent-eval\[checks\]"):
        checks.ReplyShape({})
