"""Temporary files by which this program tells the suite's process what to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ci_agent_eval.contract.adaptive import AdaptivePlan
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.resume import ResumeRequest
from ci_agent_eval.contract.run_plan import RunPlan

if TYPE_CHECKING:
    from ci_agent_eval.runner.suite import SuiteCommand

_Plan = RunPlan | AdaptivePlan | ResumeRequest


@dataclass(frozen=True, slots=True)
class SuiteFiles:
    """Temporary files between this program and the suite's process."""

    options: Sequence[str] = ()
    """The plugin's options that name them."""
    activity_dir: Path | None = None
    """Folder for the activity of running episodes; None: the suite does not write it."""


@contextmanager
def provide_suite_files(command: SuiteCommand) -> Iterator[SuiteFiles]:
    """Write the plans that are not the default to files, and remove all files at the end."""
    request = ResumeRequest(
        command=command.digest,
        folder=None if command.resume is None else str(command.resume.absolute()),
        strict=command.requires_resume,
    )
    plans: Sequence[tuple[str, _Plan]] = (
        ("--episode-adaptive-plan", command.adaptive_plan),
        ("--episode-plan", command.plan),
        ("--episode-resume", request),
    )
    with TemporaryDirectory(prefix="agent-eval-") as folder:
        options = [
            f"{option}={_write_plan(Path(folder, option.strip('-')), plan)}"
            for option, plan in plans
            if plan not in (RunPlan(), AdaptivePlan())
        ]
        if not command.shows_activity:
            yield SuiteFiles(options)
            return
        activity = Path(folder, "activity")
        activity.mkdir()
        yield SuiteFiles([*options, f"--episode-activity={activity}"], activity)


def _write_plan(file: Path, plan: _Plan) -> Path:
    file.write_text(canonical_json(plan), encoding="ascii")
    return file
