"""What a source of baselines is asked, and what it finds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.contract.findings import Finding

Redact = Callable[[str], str]
"""Takes secrets out of a text."""


@dataclass(frozen=True, slots=True)
class BaselineRequest:
    """What a baseline is sought for."""

    name: str
    """The setting as it was given."""
    root: Path
    """The folder that paths are relative to."""
    runs: int = 10
    """How many runs of the base to take at most, the latest."""
    redact: Redact | None = None
    search_path: str = os.defpath
    """Where programs such as git are."""
    suite: str | None = None
    """The suite whose runs are wanted; None: of any."""
    own: Path | None = None
    """The report folder of the run itself, which is no baseline of it."""


@dataclass(frozen=True, slots=True)
class FoundBaseline:
    """A baseline or why there is none; what was wrong with its files."""

    baseline: Baseline | NoBaseline
    findings: tuple[Finding, ...] = ()
    """A blocking one: it was asked for and there, and cannot be read."""


BaselineSource = Callable[[BaselineRequest], FoundBaseline]
"""Finds a baseline. What is not there is `NoBaseline`; what is there and broken is a finding."""


def build_unreadable_baseline(where: str, message: str) -> FoundBaseline:
    """Return that a baseline is there, or ought to be, and cannot be read."""
    finding = Finding("baseline", where, message)
    return FoundBaseline(NoBaseline("it cannot be read"), (finding,))


def build_missing_baseline(reason: str) -> FoundBaseline:
    """Return that there is no baseline, and why."""
    return FoundBaseline(NoBaseline(reason))
