"""The locks: hashes on everything, one version of a package in all of them, no index named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
FRAMEWORKS = (
    "agno",
    "autogen",
    "crewai",
    "google-adk",
    "langgraph",
    "llama-index",
    "node",
    "openai-agents",
    "pydantic-ai",
    "sdks",
    "smolagents",
    "strands",
)
EXAMPLES = ("langgraph", "openai-agents", "pydantic-ai")
"""Environments with public example agents."""
APART = {
    "compat-oldest",
    "bench-deepeval",
    *(f"frameworks-{name}" for name in FRAMEWORKS),
    *(f"examples-{name}" for name in EXAMPLES),
}
"""The first holds the oldest versions that we support; the others pin what they need of others."""


def pins(lock: Path) -> dict[str, str]:
    """Return package -> version; AssertionError for a pin without a hash."""
    found = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text("utf-8").strip()):
        head, *rest = entry.split("\\\n")
        name, version = re.fullmatch(r"([\w.-]+)==(\S+)( ;.*)?", head.strip()).group(1, 2)
        assert rest, f"{name} has no hash"
        assert all(re.fullmatch(r"\s*--hash=sha256:[0-9a-f]{64} ?", line) for line in rest)
        found[name] = version
    return found


def test_the_locks_are_there():
    assert [lock.stem for lock in LOCKS] == [
        "action",
        "bench-deepeval",
        "bench-inspect",
        "bench-junit",
        "bench-pytest",
        "build",
        "compat-newest",
        "compat-oldest",
        "dev",
        *(f"examples-{name}" for name in EXAMPLES),
        *(f"frameworks-{name}" for name in FRAMEWORKS),
        "lint",
        "lock",
        "suite",
    ]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pin_has_hashes_and_no_index_is_named(lock):
    assert pins(lock)
    assert "://" not in lock.read_text("utf-8")
    assert "index-url" not in lock.read_text("utf-8")


@pytest.mark.parametrize(
    "lock", [lock for lock in LOCKS if lock.stem not in APART], ids=lambda lock: lock.stem
)
def test_versions_agree_with_those_of_the_tests(lock):
    tested = pins(ROOT / "requirements" / "dev.txt")

    different = {
        name: version
        for name, version in pins(lock).items()
        if tested.get(name, version) != version
    }
    assert different == {}


def test_the_actions_pins_are_all_tested():
    assert (
        pins(ROOT / "requirements" / "action.txt").items()
        <= pins(ROOT / "requirements" / "dev.txt").items()
    )
