"""`make test-sample`: of `make test-full`, what a change can touch and a part of the rest in turn.

The choice depends on the commit alone, so that a run can be repeated. What is left out is printed.
CI_BASE names the commit that the change is based on; else it is the merge base with origin/main,
or the parent of a commit that is on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 400
"""For the parts of one run; with lint, test and container they fit into 30 minutes."""


class Part(NamedTuple):
    """One call of make."""

    words: tuple[str, ...]
    seconds: int
    """About so many on two cores, with the installation."""
    touched_by: tuple[str, ...]
    """Beginnings of the paths that it tests."""


_TRAFFIC = ("ci_agent_eval/engine/", "ci_agent_eval/model_traffic/", "tests/frameworks/")
_PLUGIN = ("ci_agent_eval/pytest_plugin/", "ci_agent_eval/recording/")
_GITHUB = ("tests/integration/github", "tests/integration/fork_handoff")
_FRAMEWORKS = (
    *("agno", "autogen", "crewai", "functions", "google-adk", "langgraph", "llama-index", "node"),
    *("openai-agents", "pydantic-ai", "sdks", "semantic-kernel", "smolagents", "strands"),
)


def _build_full(
    seconds: int, tests: Sequence[str], *code: str, without: Sequence[str] = ()
) -> Part:
    ignored = [f"--ignore={folder}" for folder in without]
    return Part(("full", f"ARGS=-q {' '.join([*tests, *ignored])}"), seconds, (*code, *tests))


PARTS = (
    _build_full(240, _GITHUB, "ci_agent_eval/github/", "tests/github_fake/"),
    _build_full(120, ["tests/integration/html"], "ci_agent_eval/render/html/"),
    _build_full(120, ["tests/unit/results"], "ci_agent_eval/results/"),
    _build_full(120, ["tests/unit/steering"], "ci_agent_eval/steering/"),
    _build_full(180, ["tests/plugin"], *_PLUGIN),
    _build_full(
        180,
        ["tests/unit", "tests/integration"],
        "ci_agent_eval/analysis/",
        without=[*_GITHUB, "tests/integration/html", "tests/unit/results", "tests/unit/steering"],
    ),
    Part(("compat-oldest", "ARGS=-q"), 180, (*_PLUGIN, "tests/compat/", "requirements/matrix.txt")),
    Part(("compat-newest", "ARGS=-q"), 180, (*_PLUGIN, "tests/compat/", "requirements/lock.txt")),
    Part(("newest", "ARGS=-q tests/unit"), 240, ()),
    Part(("newest", "ARGS=-q tests/plugin"), 400, ()),
    Part(
        ("steering-agents", "AGENTS=claude-code codex"),
        240,
        ("ci_agent_eval/steering/", "tests/steering_agents/"),
    ),
    *(
        Part(("frameworks", f"NAME={name}"), 120, (*_TRAFFIC, "requirements/matrix.txt"))
        for name in _FRAMEWORKS
    ),
)


def choose_parts(commit: str, changed: Collection[str] | None) -> list[Part]:
    """Return the parts to run: touched ones first, each kind in the order that the commit gives.

    `changed` is None if nobody knows what changed; then every part counts as touched.
    """
    start = int(commit[:8], 16) % len(PARTS)
    turned = [*PARTS[start:], *PARTS[:start]]
    turned.sort(key=lambda part: not _is_touched(part, changed))
    chosen: list[Part] = []
    for part in turned:
        if sum(one.seconds for one in chosen) + part.seconds <= SECONDS:
            chosen.append(part)
    return chosen


def _is_touched(part: Part, changed: Collection[str] | None) -> bool:
    return changed is None or any(path.startswith(part.touched_by) for path in changed)


def list_changed_files() -> list[str] | None:
    """Return the paths that the commit changes; None: its base is not in this clone."""
    base = os.environ.get("CI_BASE") or _ask_git("merge-base", "HEAD", "origin/main")
    if base in {None, _ask_git("rev-parse", "HEAD")}:
        base = "HEAD^"
    found = _ask_git("diff", "--name-only", "--no-renames", "-z", str(base), "HEAD")
    return None if found is None else [path for path in found.split("\0") if path]


def _ask_git(*words: str) -> str | None:
    done = subprocess.run(
        ["git", *words],  # noqa: S607 - the git of the machine
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    """Run the chosen parts, each to its end, and say which ones are left out and which failed."""
    commit = _ask_git("rev-parse", "HEAD") or "0"
    changed = list_changed_files()
    chosen = choose_parts(commit, changed)
    for part in PARTS:
        why = "touched, but there is no time" if _is_touched(part, changed) else "not its turn"
        if part not in chosen:
            print(f"left out: make {' '.join(part.words)} ({why})")
    failed = []
    for part in chosen:
        print(f"\n== make {' '.join(part.words)}", flush=True)
        make = ["make", "--no-print-directory", *part.words]
        if subprocess.run(make, cwd=ROOT, check=False).returncode:
            failed.append(part)
    for part in failed:
        print(f"failed: make {' '.join(part.words)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
