"""The oldest versions that `make compat` runs are those that the package declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLDEST = dict(
    re.findall(
        r"^([\w.-]+)==(\S+)",
        (ROOT / "requirements/matrix.txt")
        .read_text()
        .partition("# [compat-oldest]\n")[2]
        .partition("\n\n")[0],
        re.MULTILINE,
    )
)


def test_the_oldest_that_is_run_is_the_oldest_that_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (pytest_bound,) = project["optional-dependencies"]["pytest"]
    (pydantic_bound,) = (d for d in project["dependencies"] if d.startswith("pydantic>"))
    assert OLDEST["pytest"].startswith(pytest_bound.removeprefix("pytest>=") + ".")
    assert OLDEST["pydantic"].startswith(
        pydantic_bound.removeprefix("pydantic>=").partition(",")[0] + "."
    )
