"""Findings about the result files: as rows in reading order, and as clauses of the headline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.findings import (
    Finding,
    FindingKind,
    MissingShards,
    RepeatedShard,
    StoppedRun,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.numbers import count_noun, format_count
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


_FAILED_JOB = "the job failed and no result says why; a test file may not have loaded"

_FINDINGS: dict[FindingKind, tuple[str, str]] = {
    "no_results": ("no results were found", "no results were found"),
    "install_failed": ("the installation failed", "the installation failed"),
    "interrupted": ("the run was interrupted", "the run was interrupted"),
    "stopped": ("a suite budget stopped the run", "suite budgets stopped {} runs"),
    "collection_error": ("1 collection error", "{} collection errors"),
    "shards": ("the shards are not one whole run", "the shards are not one whole run"),
    "failed_job": (_FAILED_JOB, _FAILED_JOB),
    "unreadable_file": ("1 result file cannot be read", "{} result files cannot be read"),
    "handover": ("1 remark on the hand-over", "{} remarks on the hand-over"),
    "disagreement": ("1 disagreement between files", "{} disagreements between files"),
    "declared_counts_differ": ("1 file misstates its counts", "{} files misstate their counts"),
    "duplicate": ("1 duplicate episode", "{} duplicate episodes"),
    "baseline": ("the baseline cannot be read", "the baseline cannot be read"),
    "left_out": ("scenarios were left out", "scenarios were left out"),
    "repaired_file": ("1 result file was repaired", "{} result files were repaired"),
}
"""In the order of the sentence, the most important kind first."""


def describe_findings(report: Report, *, blocking: bool) -> Iterator[str]:
    """Yield a clause for each kind of finding."""
    shown = build_finding_rows(report).shown
    found = [row.finding for row in shown if row.gates is blocking]
    kinds = _count_by_kind(found)
    for kind, (one, many) in _FINDINGS.items():
        if kind == "shards" and kinds[kind]:
            yield _describe_broken_shards(found) if blocking else _count_run_again(kinds[kind])
        elif kind == "stopped" and kinds[kind] == 1:
            yield f"{one}{_count_left_out(found)}"
        elif kind == "interrupted" and kinds[kind] and report.summary.tally.total:
            finished = report.summary.tally.judged
            yield f"{one} ({count_noun(finished, 'episode')} judged)"
        elif kinds[kind]:
            yield one if kinds[kind] == 1 else many.format(format_count(kinds[kind]))


def _count_by_kind(found: Sequence[Finding]) -> Counter[FindingKind]:
    """Count the findings of each kind; of the kinds about a file, count the files."""
    places = (
        (f.kind, _LINE.sub("", f.where) if f.kind in _ABOUT_FILES and f.where else n)
        for n, f in enumerate(found)
    )
    return Counter(kind for kind, _ in set(places))


_ABOUT_FILES = frozenset({"unreadable_file", "declared_counts_differ", "repaired_file"})
_LINE = re.compile(r":\d+$")
_MOST_NAMED = 5
"""Most missing shards that the sentence names."""


def _describe_broken_shards(found: Sequence[Finding]) -> str:
    """Name the missing or repeated shards, where nothing else is wrong with the shards."""
    messages = [finding.message for finding in found if finding.kind == "shards"]
    only = messages[0] if len(messages) == 1 else None
    if isinstance(only, RepeatedShard):
        shard = f"shard {format_count(only.index)} of {format_count(only.total)}"
        return f"{shard} is there {format_count(only.times)} times"
    if not isinstance(only, MissingShards):
        return _FINDINGS["shards"][0]
    number, whole = len(only.indexes), f"of {format_count(only.total)}"
    if number == 1:
        return f"shard {format_count(only.indexes[0])} {whole} is missing"
    if number > _MOST_NAMED:
        return f"{format_count(number)} {whole} shards are missing"
    return f"shards {', '.join(map(str, only.indexes))} {whole} are missing"


def _count_left_out(found: Sequence[Finding]) -> str:
    """Count the episodes that a stopped run did not run."""
    run = next(finding.message for finding in found if finding.kind == "stopped")
    if not isinstance(run, StoppedRun) or run.selected is None:
        return ""
    return f" ({format_count(run.left_out)} of {count_noun(run.selected, 'episode')} did not run)"


def _count_run_again(number: int) -> str:
    return f"{count_noun(number, 'shard was', 'shards were')} run again"
