"""How many episodes each commit of three scripted histories runs; writes SELECTION.md.

Each commit is compared with a full run of the commit before it, as in a pull request. It takes
minutes, and Python 3.12 or newer, such as that of `make affected-mutations`.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.histories import (
    DEPENDENCY_UPDATES,
    PREPARATION,
    PROMPT_WORK,
    REFACTORING,
)
from ci_agent_eval.contract.dependencies import DEPENDENCIES_NAME, Dependencies
from ci_agent_eval.dependencies.document import unpack_dependencies
from ci_agent_eval.dependencies.git import GitRepository
from ci_agent_eval.dependencies.selection.changes import compare_trees
from ci_agent_eval.dependencies.selection.select import SelectionRules, select_affected
from tests.affected_mutations.copies import Workplace
from tests.affected_mutations.mutation import Edit
from tests.affected_mutations.processes import run_command

HISTORIES = {
    "prompt work": PROMPT_WORK,
    "refactoring": REFACTORING,
    "dependency updates": DEPENDENCY_UPDATES,
}
COMMITS = 30
PAGE = Path(__file__).with_name("SELECTION.md")


@dataclass(frozen=True)
class Step:
    """What a commit would have run."""

    subject: str
    selected: int
    total: int
    is_full: bool

    @property
    def share(self) -> float:
        """Selected episodes of all."""
        return self.selected / self.total


def replay_history(name: str) -> Sequence[Step]:
    """Return what each commit runs; after it everything runs, as on the default branch."""
    with tempfile.TemporaryDirectory(prefix="histories-") as folder:
        place = Workplace(Path(folder))
        place.create_project()
        commit_edits(place, "Leave scenarios out", PREPARATION)
        return list(_replay_commits(name, place))


def _replay_commits(name: str, place: Workplace) -> Iterator[Step]:
    total = run_suite(place)
    for subject, edits in HISTORIES[name]:
        commit_edits(place, subject, edits)
        step = select_step(place, subject, total)
        sys.stdout.write(f"{name}: {subject}: {step.selected} of {total}\n")
        sys.stdout.flush()
        yield step
        total = run_suite(place)


def select_step(place: Workplace, subject: str, total: int) -> Step:
    """Select by the recorded run of the last commit, as `agent-eval run --affected` does."""
    content = (place.baseline / DEPENDENCIES_NAME).read_bytes()
    base = unpack_dependencies(Dependencies.model_validate_json(content))
    repository = GitRepository(place.project, place.build_environ())
    changes = compare_trees(repository, base.commit or "", None, base.hashes, base.list_absent())
    rules = SelectionRules(base.recorded_at, max_age_days=7)
    found = select_affected(base, dict.fromkeys(base.scenarios), changes, rules)
    is_full = found.full_run is not None
    return Step(subject, total if is_full else len(found.selected), total, is_full)


def commit_edits(place: Workplace, subject: str, edits: Sequence[Edit]) -> None:
    """Apply edits, and commit them."""
    for edit in edits:
        edit.apply(place.project / edit.path)
    place.run_git(place.project, "add", "-A")
    place.run_git(place.project, "commit", "-q", "-m", subject)


def run_suite(place: Workplace) -> int:
    """Run all scenarios into the baseline's folder; return their number, one episode each."""
    log = place.root / "run.log"
    options = ["-q", f"--episode-report-dir={place.baseline}", "--episode-dependencies"]
    command = ["-m", "pytest", *options]
    if run_command(command, place.project, place.build_environ(), log) != 0:
        raise RuntimeError(log.read_text("utf-8"))
    results = json.loads((place.baseline / "results.json").read_text("utf-8"))
    return len(results["episodes"])


def render_page(steps: Mapping[str, Sequence[Step]]) -> str:
    """Return the whole page."""
    total = max(step.total for found in steps.values() for step in found)
    python = platform.python_version()
    base = min(step.selected for found in steps.values() for step in found)
    rows = "\n".join(_render_summary(name, found) for name, found in steps.items())
    tables = "\n".join(_render_history(name, found) for name, found in steps.items())
    return f"""# Benchmark results: episodes that a commit runs

Three scripted histories of {COMMITS} commits each change the example project of
`make affected-mutations` ({total} scenarios of one episode, Python {python}). Each commit
is selected against a full run of the commit before it. The figures are counts, which do not depend
on the machine. `make bench` writes this page.

| history | commits | median share | mean share | full runs | episodes run | of |
|---|---:|---:|---:|---:|---:|---:|
{rows}

The project is hostile. {base} scenarios run at every commit, because they start child processes
that no test declares, or use native code or files that git does not track. Most scenarios reach
the function that reads prompts by its name, so that each prompt counts for them. Two scenarios
are left out: they import packages from a folder outside of the repository and of the environment,
after which every scenario runs at every commit.

{tables}"""


def _render_summary(name: str, steps: Sequence[Step]) -> str:
    shares = [step.share for step in steps]
    figures = (
        str(len(steps)),
        f"{statistics.median(shares):.0%}",
        f"{statistics.mean(shares):.0%}",
        str(sum(step.is_full for step in steps)),
        f"{sum(step.selected for step in steps):,}",
        f"{sum(step.total for step in steps):,}",
    )
    return f"| {name} | {' | '.join(figures)} |"


def _render_history(name: str, steps: Sequence[Step]) -> str:
    rows = "\n".join(
        f"| {number} | {step.subject} | {step.selected} | {'everything' if step.is_full else ''} |"
        for number, step in enumerate(steps, start=1)
    )
    title = name.capitalize()
    return f"## {title}\n\n| | commit | episodes | |\n|---:|---|---:|---|\n{rows}\n"


def main() -> None:
    """Replay the histories in parallel, and write the page."""
    for name, commits in HISTORIES.items():
        if len(commits) != COMMITS:
            raise ValueError(f"{name} has {len(commits)} commits")
    with ProcessPoolExecutor(len(HISTORIES)) as pool:
        steps = dict(zip(HISTORIES, pool.map(replay_history, HISTORIES), strict=True))
    PAGE.write_text(render_page(steps), "utf-8")


if __name__ == "__main__":
    main()
