"""The choice of the scenarios that a change can have affected."""

from __future__ import annotations

from ci_agent_eval.pytest_plugin.collection.declared_files import (
    DeclaredScenario,
    select_affected,
)
from tests.tables import each_row

OWN = ("tests/test_desk.py", "tests/conftest.py", "conftest.py")
SUITE = (
    DeclaredScenario(
        "refund",
        frozenset({*OWN, "tests/cassettes/refund.yaml"}),
        frozenset({"prompts/refund.md", "src/refund/**/*.py", "data"}),
    ),
    DeclaredScenario(
        "cancel",
        frozenset({*OWN, "tests/cassettes/cancel.yaml"}),
        frozenset({"prompts/cancel.md", "src/cancel"}),
    ),
    DeclaredScenario("greet", frozenset({"tests/test_greet.py"}), None),
)
IGNORE = ("docs/*", "README*")


@each_row(
    ("changed", "left_out"),
    [
        ((), ["cancel", "refund"]),
        (("docs/a/b.md", "README.md"), ["cancel", "refund"]),
        (("prompts/refund.md",), ["cancel"]),
        (("src/refund/policy.py",), ["cancel"]),
        (("src/refund/rules/eu.py", "README.md"), ["cancel"]),
        (("data/orders/1.json",), ["cancel"]),
        (("src/cancel/policy.py",), ["refund"]),
        (("prompts/refund.md", "src/cancel/policy.py"), []),
        (("tests/cassettes/cancel.yaml",), ["refund"]),
        (("tests/conftest.py",), []),
        (("tests/test_desk.py",), []),
        (("tests/test_greet.py",), ["cancel", "refund"]),
    ],
)
def test_a_scenario_runs_if_one_of_its_files_changed(changed, left_out):
    found = select_affected(SUITE, changed, IGNORE)
    assert (list(found.left_out), found.full_run) == (left_out, None)


@each_row(
    "path",
    [
        "src/helpers.py",
        "Prompts/refund.md",
        "prompts/refund.md.bak",
        "src/refund.py",
        "docs.py",
        "uv.lock",
        "data/poetry.lock",
        "data/package-lock.json",
        "docs/requirements.txt",
        "requirements/lock.txt",
        "docs/agent-eval.toml",
        "pyproject.toml",
        "src/cancel/pytest.ini",
        "data/setup.cfg",
        ".github/workflows/ci.yml",
        "data/.gitattributes",
    ],
)
def test_everything_runs_if_a_change_may_concern_all(path):
    found = select_affected(SUITE, ("README.md", path), IGNORE)
    assert found.left_out == ()
    assert path in found.full_run
