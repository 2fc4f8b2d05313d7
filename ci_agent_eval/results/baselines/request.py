"""The request for a baseline and its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.adaptive import AdaptiveStop
from ci_agent_eval.contract.dependencies import Dependencies
from ci_agent_eval.contract.episode import CarriedOver
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.result_mapping import ImportPolicy
from ci_agent_eval.results.loaded_redaction import EpisodeKey, Redact

LatestDetail = Literal["none", "records", "lines"]
"""`records` are enough to select scenarios; to carry results over takes their `lines`."""


@dataclass(frozen=True, slots=True)
class BaselineRequest:
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
    latest: LatestDetail = "none"
    """The detail in which the latest run is kept, as `FoundBaseline.latest`."""
    trusts_paths: bool = False
    """Whether results of a path may be carried over: nobody else can have written them."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The latest run of a baseline, whose results can be carried over."""

    episodes: tuple[EpisodeRecord, ...]
    """Its episodes, without those that it carried over itself and, if there are lines, without
    the scenarios whose text has a secret."""
    lines: Mapping[EpisodeKey, bytes] = field(default_factory=dict)
    """Their canonical JSON, compressed (`episode_lines`); empty unless requested."""
    commit: str | None = None
    run: str | None = None
    """Id of its workflow run."""
    is_trusted: bool = False
    """Whether its source is one that the change cannot have written."""
    adaptive_stops: tuple[AdaptiveStop, ...] = ()
    dependencies: tuple[Dependencies, ...] = ()
    """One for each shard; empty: it recorded none, or they cannot be read."""
    problem: str = ""
    """Why there are no dependencies."""

    @property
    def origin(self) -> CarriedOver | None:
        """The origin of its episodes where they are carried over; None: they cannot be."""
        if self.commit is None or not self.dependencies:
            return None
        began = min(one.recorded_at for one in self.dependencies)
        return CarriedOver(run=self.run, commit=self.commit, recorded_at=began)


@dataclass(frozen=True, slots=True)
class FoundBaseline:
    """A baseline, or the reason that there is none, with the findings about its files."""

    baseline: Baseline | NoBaseline
    findings: tuple[Finding, ...] = ()
    """A blocking finding means that the baseline exists and cannot be read."""
    latest: EarlierRun | None = None
    """Its latest run, if it was requested and has episodes that ran."""


BaselineSource = Callable[[BaselineRequest], FoundBaseline]
"""Loads a baseline. A missing one is `NoBaseline`, an unreadable one a finding."""


def build_unreadable_baseline(where: str, message: str) -> FoundBaseline:
    """Build the result for a baseline that exists, or should, and cannot be read."""
    finding = Finding("baseline", where, message)
    return FoundBaseline(NoBaseline("the baseline cannot be read"), (finding,))


def build_missing_baseline(reason: str) -> FoundBaseline:
    """Build the result for a missing baseline, with the reason."""
    return FoundBaseline(NoBaseline(reason))
