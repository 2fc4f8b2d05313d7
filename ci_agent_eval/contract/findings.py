"""Findings: problems with the result files, and the suite budget at which a run was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, WithJsonSchema

from ci_agent_eval.contract.base import Amount
from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, BudgetFormat

_MAX_DIGITS = 12

_KINDS = {kind.name: kind for kind in SUITE_BUDGET_KINDS}


def _check_budget_name(name: str) -> str:
    if name not in _KINDS:
        raise ValueError(f"no budget of a suite is called {name!r}")
    return name


SuiteBudgetName = Annotated[
    str,
    AfterValidator(_check_budget_name),
    WithJsonSchema({"type": "string", "enum": list(_KINDS)}),
]


@dataclass(frozen=True, slots=True)
class SuiteStop:
    """The suite budget that a run exceeded, with the used amount and the limit."""

    budget: SuiteBudgetName
    used: Amount
    limit: Amount

    @property
    def sentence(self) -> str:
        """Description of the exceeded budget.

        Defined here because pytest shows it while the suite runs, without a renderer.
        """
        used, limit = _FORMATS[_KINDS[self.budget].format](self.used, self.limit)
        return f"suite budget {self.budget} exceeded: {used} of {limit}"


def _format_dollars(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=2)
    return f"${used_text}", f"${limit_text}"


def _format_seconds(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=1)
    return f"{used_text} s", f"{limit_text} s"


def _format_milliseconds(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=1)
    return f"{used_text} ms", f"{limit_text} ms"


def _format_plain(used: float, limit: float) -> tuple[str, str]:
    return f"{used:.15g}", f"{limit:.15g}"


_FORMATS: dict[BudgetFormat, Callable[[float, float], tuple[str, str]]] = {
    "count": _format_plain,
    "money": _format_dollars,
    "milliseconds": _format_milliseconds,
    "seconds": _format_seconds,
}


def _format_distinct(used: float, limit: float, *, digits: int) -> tuple[str, str]:
    """Format two figures with as few digits as show that the limit is exceeded."""
    for places in range(digits, _MAX_DIGITS):
        used_text, limit_text = f"{used:.{places}f}", f"{limit:.{places}f}"
        if float(limit_text) == limit and float(used_text) > limit:
            return used_text, limit_text
    return repr(used), repr(limit)


FindingKind = Literal[
    "no_results",  # no file matched, or the files were empty
    "unreadable_file",  # a result file could not be read to its end
    "repaired_file",  # characters were replaced so that the rest could be read
    "declared_counts_differ",  # a suite's declared totals differ from its cases
    "passed_later",  # a test failed and passed in one file, perhaps on a retry
    "disagreement",  # JSON and JUnit of one run disagree
    "collection_error",  # pytest could not collect a file
    "interrupted",  # the run ended before its episodes did
    "stopped",  # the run was stopped at a budget of the suite
    "install_failed",  # the suite could not be set up
    "shared_scenario",  # two tests have the same scenario id
    "shards",  # a shard is missing, repeated, or from another run
    "failed_job",  # GitHub reports a failed job that the results do not explain
    "handover",  # the results are of another attempt than GitHub's run
    "default_settings",  # no settings file, although one may have been intended
    "duplicate",  # the same episode in two files
    "left_out",  # scenarios did not run, as the change has not affected what they declare
    "unused_entry",  # a waiver that matches no scenario
    "baseline",  # a requested baseline cannot be read completely
    "confirmation",  # the runs that should confirm a drop do not count
]


UPLOAD_ALL_SHARDS = (
    "let every job of the matrix upload its report folder, and report on all of one run"
)
"""Remedy if the shards are not exactly one whole run."""


@dataclass(frozen=True, slots=True)
class MissingShards:
    """Shards of a split without results."""

    indexes: tuple[int, ...]
    """1-based, in order."""
    total: int
    """Number of shards of the split."""
    type: Literal["missing_shards"] = "missing_shards"


@dataclass(frozen=True, slots=True)
class RepeatedShard:
    """A shard with more than one set of results in the same attempt."""

    index: int
    total: int
    """Number of shards of the split."""
    times: int
    type: Literal["repeated_shard"] = "repeated_shard"


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """A run that was stopped at a budget of its suite."""

    stop: SuiteStop
    selected: int | None
    """Episodes selected to run; None: not known."""
    left_out: int
    """Selected episodes that did not run; 0 if not known."""
    scenarios: tuple[str, ...] = ()
    """Required scenarios with iterations that did not run, in order."""
    type: Literal["stopped_run"] = "stopped_run"


FindingData: TypeAlias = MissingShards | RepeatedShard | StoppedRun
"""Findings that other code inspects. `render/` turns them into sentences."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem with the result files that the report must mention."""

    kind: FindingKind
    where: str
    """The file (and line or node id), relative to the root."""
    message: str | FindingData
    """The problem, and the remedy if there is one.

    Data if other code inspects it, else a sentence for people that no code parses.
    `render.sentences.describe_finding` returns the sentence for both.
    """
    blocking: bool = True
    """A blocking finding fails the gate."""

    def __lt__(self, other: Finding) -> bool:
        return self._sort_key() < other._sort_key()

    def _sort_key(self) -> tuple[str, str, str, str, bool]:
        is_text = isinstance(self.message, str)
        text, data = (str(self.message), "") if is_text else ("", repr(self.message))
        return self.kind, self.where, text, data, self.blocking


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One result file with the counts of its cases, never its declared totals."""

    path: str
    kind: Literal["episodes", "junit"]
    cases: int = 0
    passed: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    readable: bool = True
