"""Findings about the result files as rows, in the order in which to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.findings import Finding, FindingKind
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.sentences import describe_finding

FINDING_KINDS: dict[FindingKind, str] = {
    "no_results": "no results",
    "interrupted": "interrupted",
    "stopped": "stopped",
    "collection_error": "collection error",
    "install_failed": "set-up failed",
    "unreadable_file": "unreadable file",
    "disagreement": "disagreement",
    "failed_job": "failed job",
    "handover": "hand-over",
    "default_settings": "settings",
    "declared_counts_differ": "misstated counts",
    "passed_later": "passed later",
    "shards": "shards",
    "duplicate": "duplicate",
    "shared_scenario": "shared scenario",
    "repaired_file": "repaired file",
    "left_out": "not affected",
    "unused_entry": "unused entry",
    "baseline": "baseline",
}
"""Names of the kinds of findings."""

RUN_AGAIN = "shard run again"
"""Name of a finding about shards that is no fault: a later attempt replaced the shard."""

_OF_BROKEN_SHARDS = frozenset({"disagreement", "duplicate"})
"""Kinds that come by the dozen where the shards are not of one run."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with its name and sentence; `where` and the sentence may hold foreign text."""

    finding: Finding
    name: str
    sentence: str

    @property
    def where(self) -> str:
        """The file it is about; empty: none."""
        return self.finding.where

    @property
    def has_traceback(self) -> bool:
        """Whether it ends with the output of pytest, or of an installation."""
        has_output = self.finding.kind in {"collection_error", "install_failed"}
        return has_output and "\n" in self.sentence.strip()

    @property
    def error(self) -> str:
        """The last line, which has the exception, or the error of an installation."""
        return self.sentence.strip().rpartition("\n")[2].removeprefix("E   ").strip()

    @property
    def gates(self) -> bool:
        """Whether it gates."""
        return self.finding.blocking


@dataclass(frozen=True, slots=True)
class FindingRows:
    """The findings about the result files, in the order in which a reader needs them."""

    shown: Sequence[FindingRow] = ()
    """First those that gate, of them the shards' first."""
    consequences: Sequence[FindingRow] = ()
    """Findings that may follow from broken shards, and need not be read."""

    def __iter__(self) -> Iterator[FindingRow]:
        yield from self.shown
        yield from self.consequences

    def __len__(self) -> int:
        return len(self.shown) + len(self.consequences)

    @property
    def summary(self) -> str:
        """The number of findings that may follow from broken shards."""
        return f"{count_noun(len(self.consequences), 'finding')} that may follow from it"


def build_finding_rows(report: Report) -> FindingRows:
    """Return the findings; the consequences of broken shards are apart."""
    found = report.summary.findings
    broken = any(f.kind == "shards" and f.blocking for f in found)
    consequences = [f for f in found if broken and f.blocking and f.kind in _OF_BROKEN_SHARDS]
    shown = [finding for finding in found if finding not in consequences]
    shown.sort(key=lambda f: (not f.blocking, not (broken and f.kind == "shards")))
    return FindingRows(tuple(map(_build_row, shown)), tuple(map(_build_row, consequences)))


def _build_row(finding: Finding) -> FindingRow:
    if finding.kind == "shards" and not finding.blocking:
        name = RUN_AGAIN
    else:
        name = FINDING_KINDS.get(finding.kind, finding.kind.replace("_", " "))
    return FindingRow(finding, name, describe_finding(finding))
