"""The environment holds exactly what one of the two locks names."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
NOT_LOCKED = {"ci-agent-eval", "pip", "setuptools"}


def locked(name):
    """Return (package, version), of each Python that has its own."""
    if name == "newest":
        text = (REQUIREMENTS / "lock.txt").read_text("utf-8")
    else:
        sections = (REQUIREMENTS / "matrix.txt").read_text("utf-8")
        text = sections.partition("# [compat-oldest]\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_nothing_else_and_no_other_version_is_installed():
    installed = {
        re.sub(r"[-_.]+", "-", found.name).lower(): found.version for found in distributions()
    }
    ours = {name: installed[name] for name in installed.keys() - NOT_LOCKED}
    lock = next(
        lock
        for name in ("oldest", "newest")
        if ("pytest", ours["pytest"]) in (lock := locked(name))
    )
    assert ours.items() <= lock
    assert {"pydantic", "pytest-asyncio", "pytest-xdist", "hypothesis"} <= ours.keys()
