"""docs/compatibility.md says what `make compat` runs: the versions of its locks, and its tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/compatibility.md").read_text("utf-8")
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
OLDEST, NEWEST = (
    dict(
        re.findall(
            r"^([\w.-]+)==(\S+)",
            (ROOT / f"requirements/compat-{name}.txt").read_text(),
            re.MULTILINE,
        )
    )
    for name in ("oldest", "newest")
)


def names(group):
    """Return the packages that a group names itself."""
    return {
        requirement.partition(">")[0].partition("=")[0]
        for requirement in GROUPS[group]
        if isinstance(requirement, str)
    }


def table_of_versions():
    named = sorted(names("compat-oldest") | names("compat-newest"))
    rows = [f"| {name} | {OLDEST.get(name, '–')} | {NEWEST.get(name, '–')} |" for name in named]
    return "\n".join(["| package | oldest | newest |", "|---|---|---|", *rows])


def test_the_versions_are_those_of_the_locks():
    assert table_of_versions() in PAGE, (
        f"write this into docs/compatibility.md:\n{table_of_versions()}"
    )


def test_the_oldest_that_is_run_is_the_oldest_that_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (pytest_bound,) = project["optional-dependencies"]["pytest"]
    (pydantic_bound,) = (d for d in project["dependencies"] if d.startswith("pydantic>"))
    assert OLDEST["pytest"].startswith(pytest_bound.removeprefix("pytest>=") + ".")
    assert OLDEST["pydantic"].startswith(
        pydantic_bound.removeprefix("pydantic>=").partition(",")[0] + "."
    )
