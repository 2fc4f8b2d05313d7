"""Every count of a public corpus of JUnit files, against counts made independently of us."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from ci_agent_eval.results.load import load_results
from tests.tables import each_row

_BESIDE = Path(__file__).resolve().parents[5] / "shared/corpus/junit"
CORPUS = Path(os.environ.get("AGENT_EVAL_JUNIT_CORPUS", _BESIDE))
ABSENT = "the JUnit corpus is not here; name its folder in AGENT_EVAL_JUNIT_CORPUS"


def rows() -> list[dict[str, str]]:
    index = CORPUS / "INDEX.tsv"
    if not index.is_file():
        return []
    with index.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


pytestmark = pytest.mark.skipif(not rows(), reason=ABSENT)

LOSSES = {
    # These declare cases or failures that are nowhere in the file.
    "enricomi/junit-xml/no-cases-but-tests.xml",
    "enricomi/junit-xml/xunit/xunit.xml",
    "junitparser/no_fails.xml",
}


@each_row("row", rows(), ids=lambda row: row["path"])
def test_every_count_is_equal_and_every_unreadable_file_is_named(row: dict[str, str]) -> None:
    path = row["path"]
    found = load_results([], [path], root=CORPUS)
    (source,) = found.sources
    unreadable = [f.where for f in found.findings if f.kind == "unreadable_file"]
    counted = (source.cases, source.failures, source.errors, source.skipped)
    names = ("counted_cases", "counted_failures", "counted_errors", "counted_skipped")
    if row["counted_cases"]:
        assert counted == tuple(int(row[name]) for name in names)
    readable = bool(row["counted_cases"]) and "not-junit-root" not in row["oddities"]
    assert source.readable is readable
    assert [where.rpartition(":")[0] for where in unreadable] == ([] if readable else [path])
    declared = {f.where for f in found.findings if f.kind == "declared_counts_differ"}
    assert declared == ({path} & LOSSES)
    tally = found.tests.tally
    assert (tally.total, tally.failed, tally.error, tally.skipped) == counted
