"""A suite to run, and the temporary files that tell its process what to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ci_agent_eval.contract.affected import ChangePlan
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import AdaptivePlan


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """A suite to run: paths, arguments, interpreter, and report folder."""

    report_dir: Path
    paths: Sequence[str] = ()
    """Paths of this run; empty: those of the suite."""
    pytest_args: Sequence[str] = ()
    """Arguments of this run, in addition to those of the suite."""
    suite_paths: Sequence[str] = ()
    """Paths that define the suite."""
    suite_args: Sequence[str] = ()
    """Arguments that define the suite; they do not restrict the run."""
    python: str = sys.executable
    shard: str | None = None
    """Shard to run, such as `2/4`; None: the whole suite."""
    suite: str | None = None
    commit: str | None = None
    """The tested commit, a pull request's head; recorded in `session.json`."""
    budgets: SuiteBudgets = field(default_factory=SuiteBudgets)
    """The run stops at the hard ones."""
    adaptive_plan: AdaptivePlan = AdaptivePlan()  # noqa: RUF009 - frozen
    """The rates by which adaptive iterations are decided."""
    changes: ChangePlan | None = None
    """The changed files, to leave out what they cannot have affected; None: everything runs."""
    again: Path | None = None
    """File of the scenarios to run again, for a confirmation; None: an ordinary run."""
    color: bool = False
    """Whether pytest writes in colour, although its output is no terminal."""
    shows_activity: bool = False
    """Whether the progress has the turn and the tools of each running episode."""
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables set for the suite in addition to the inherited ones."""

    @property
    def all_args(self) -> Sequence[str]:
        """The arguments for pytest, in order."""
        return (*self.suite_args, *self.pytest_args)


@dataclass(frozen=True, slots=True)
class SuiteFiles:
    """Temporary files between this program and the suite's process."""

    options: Sequence[str] = ()
    """The plugin's options that name them."""
    activity_dir: Path | None = None
    """Folder for the activity of running episodes; None: the suite does not write it."""


@contextmanager
def provide_suite_files(command: SuiteCommand) -> Iterator[SuiteFiles]:
    """Write the adaptive plan and the changes, if there are any; remove all files at the end."""
    with TemporaryDirectory(prefix="agent-eval-") as folder:
        options = []
        if command.adaptive_plan != AdaptivePlan():
            plan = Path(folder, "adaptive-plan")
            plan.write_text(canonical_json(command.adaptive_plan), encoding="ascii")
            options.append(f"--episode-adaptive-plan={plan}")
        if command.changes is not None:
            changes = Path(folder, "changes")
            changes.write_text(canonical_json(command.changes), encoding="ascii")
            options.append(f"--episode-changes={changes}")
        if not command.shows_activity:
            yield SuiteFiles(options)
            return
        activity = Path(folder, "activity")
        activity.mkdir()
        yield SuiteFiles([*options, f"--episode-activity={activity}"], activity)
