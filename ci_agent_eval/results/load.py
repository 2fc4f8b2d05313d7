"""The one entry to result files: patterns in, everything they say out, in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.results import Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.facts import EpisodeFacts, Loaded, PlainTests
from ci_agent_eval.results.join import join, pytest_address
from ci_agent_eval.results.redacted import Redact, redacted
from ci_agent_eval.results.runs import Entry, Read, duplicate, read_loose, read_run
from ci_agent_eval.results.sources import Input, find_sources
from ci_agent_eval.results.spool import EpisodeKey, Spool


def load(
    results: Sequence[str],
    junit: Sequence[str],
    *,
    root: Path,
    spool: Spool | None = None,
    redact: Redact | None = None,
) -> Loaded:
    """Read every file that the patterns name, relative to `root`.

    What is wrong with the files is a finding. Raises InputError only for patterns that
    cannot mean anything. With a spool the episodes can be written out again, merged;
    `redact` takes secrets out of every text.
    """
    if not results and not junit:
        raise InputError("no result files were named; give --results, --junit, or both")
    sources = find_sources(results, junit, root)
    loading = _Loading()
    loading.findings += sources.findings
    for number, run in enumerate(sources.runs):
        loading.add(read_run(run, spool), number)
    for number, file in enumerate(sources.episodes, len(sources.runs)):
        loading.add(read_loose(file, spool), number)
    if sources.junit:
        loading.add_junit(sources.junit, with_json=bool(results))
    if spool is not None:
        loading.keep_in(spool)
    return loading.loaded() if redact is None else redacted(loading.loaded(), redact)


@dataclass(slots=True)
class _Loading:
    """What was read so far."""

    entries: dict[EpisodeKey, tuple[int, Entry]] = field(default_factory=dict)
    tests: PlainTests = field(default_factory=PlainTests)
    sessions: list[Session] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, read: Read, run: int) -> None:
        """Take over a run or file; an episode that is there already is a finding."""
        for key, entry in read.entries.items():
            if key in self.entries:
                first = self.entries[key][1].source.where
                self.findings.append(duplicate(key, first, entry.source.where))
            else:
                self.entries[key] = (run, entry)
        self.sources += read.sources
        self.findings += read.findings
        if read.session is not None:
            self.sessions.append(read.session)

    def add_junit(self, files: Sequence[Input], *, with_json: bool) -> None:
        """Read JUnit files and join their cases to the episodes read before.

        Where no JSON was asked for, a case cannot disagree with it.
        """
        # junitparser is not worth its start-up time to a user who has no JUnit file.
        from ci_agent_eval.results.plain import read_tests  # noqa: PLC0415 - as said

        nodeids = {key[1] for key in self.entries if key[1]}
        tests = read_tests(files, {pytest_address(nodeid) for nodeid in nodeids})
        joined = join(self.episodes(), tests.joined, complete=tests.complete)
        self.tests = tests.plain_with(joined.plain)
        self.sources += tests.sources
        self.findings += (*tests.findings, *(joined.findings if with_json else ()))

    def episodes(self) -> list[tuple[int, EpisodeFacts]]:
        """Every episode with the number of its run, by key."""
        return [(run, entry.facts) for _, (run, entry) in sorted(self.entries.items(), key=_key)]

    def keep_in(self, spool: Spool) -> None:
        """Tell the spool which lines count."""
        for key, (_, entry) in self.entries.items():
            if entry.place is not None:
                spool.keep(key, entry.place)

    def loaded(self) -> Loaded:
        """Sort everything, and say so where there is nothing."""
        if not self.entries and not any(source.cases for source in self.sources):
            self.findings.append(_nothing(self.sources))
        return Loaded(
            episodes=tuple(facts for _, facts in self.episodes()),
            tests=self.tests,
            sessions=tuple(self.sessions),
            sources=tuple(sorted(self.sources)),
            findings=tuple(sorted(set(self.findings))),
        )


def _key(item: tuple[EpisodeKey, tuple[int, Entry]]) -> EpisodeKey:
    return item[0]


def _nothing(sources: Sequence[SourceFile]) -> Finding:
    files = f"{len(sources)} file{'s' if len(sources) != 1 else ''} read"
    return Finding(
        "no_results",
        "",
        f"no episode and no test case was found ({files}); nothing is proven, "
        "check that the suite ran and where it writes",
    )
