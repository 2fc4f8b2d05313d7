"""The environment holds exactly what one of the two locks names."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
NOT_LOCKED = {"ci-agent-eval", "pip", "setuptools"}


def locked(name):
    """Return package -> version; one that another platform or Python needs may be missing."""
    if name == "newest":
        text = (REQUIREMENTS / "lock.txt").read_text("utf-8")
    else:
        sections = (REQUIREMENTS / "matrix.txt").read_text("utf-8")
        text = sections.partition("# [compat-oldest]\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_nothing_else_and_no_other_version_is_installed():
    installed = {
        re.sub(r"[-_.]+", "-", found.name).lower(): found.version for found in distributions()
    }
    ours = {name: installed[name] for name in installed.keys() - NOT_LOCKED}
    lock = next(
        lock for name in ("oldest", "newest") if (lock := locked(name))["pytest"] == ours["pytest"]
    )
    assert ours.items() <= lock.items()
    assert {"pydantic", "pytest-asyncio", "pytest-xdist", "hypothesis"} <= ours.keys()
