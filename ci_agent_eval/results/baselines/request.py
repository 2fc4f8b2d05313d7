"""The request for a baseline and its result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.result_mapping import ImportPolicy
from ci_agent_eval.results.json_text import Redact


class BaselineRequest(NamedTuple):
    """A request for a baseline."""

    name: str
    """The value of the setting."""
    root: Path
    """The folder that paths are relative to."""
    runs: int = 10
    """Maximum number of runs; the latest are taken."""
    redact: Redact | None = None
    search_path: str = os.defpath
    """Search path for programs such as git."""
    suite: str | None = None
    """The suite of the runs; None: any."""
    own: Path | None = None
    """The report folder of the compared run, which is never its own baseline."""
    imports: ImportPolicy | None = None
    """How results of other tools are read and judged; None: no thresholds and mappings."""


class FoundBaseline(NamedTuple):
    """A baseline, or the reason that there is none, with the findings about its files."""

    baseline: Baseline | NoBaseline
    findings: tuple[Finding, ...] = ()
    """A blocking finding means that the baseline exists and cannot be read."""


BaselineSource = Callable[[BaselineRequest], FoundBaseline]
"""Loads a baseline. A missing one is `NoBaseline`, an unreadable one a finding."""


def build_unreadable_baseline(where: str, message: str) -> FoundBaseline:
    """Build the result for a baseline that exists, or should, and cannot be read."""
    finding = Finding("baseline", where, message)
    return FoundBaseline(NoBaseline("the baseline cannot be read"), (finding,))


def build_missing_baseline(reason: str) -> FoundBaseline:
    """Build the result for a missing baseline, with the reason."""
    return FoundBaseline(NoBaseline(reason))
