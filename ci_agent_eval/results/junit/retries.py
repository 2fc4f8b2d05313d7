"""Find several cases of one test in a file, and merge its retries. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome

_MAX_DEPTH = 100
"""Maximum levels of subtests; a name may have any number of slashes."""


class MergedRetries(NamedTuple):
    """The changes to a file's cases that make each retried test one case."""

    dropped: Sequence[JUnitCase] = ()
    """Failing cases that a later attempt at the same test replaces."""
    flaky: Sequence[JUnitCase] = ()
    """Tests that failed first and passed on a retry."""
    passed: int = 0
    """Number of passed cases that are further attempts at a test."""


class PytestReruns:
    """Merges reruns in a suite of pytest: pytest-rerunfailures writes an empty case for each.

    Addresses are kept as hashes: there may be 100,000 of them.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._passed_again: dict[int, JUnitCase] = {}
        self._repeated = 0

    def add(self, address: tuple[str, str], outcome: Outcome, _: JUnitCase | None = None) -> None:
        """Add the next case by its class name and name, unless it belongs to an episode."""
        key = hash(address)
        if key in self._seen:
            self._repeated += 1
            self._passed_again[key] = JUnitCase(*address, outcome, flaky=True)
        if outcome == "passed" and address[1]:
            self._seen.add(key)

    def merge(self, declared: int | None, cases: int) -> MergedRetries:
        """Return the retries, unless the suite declares as many tests as it has cases.

        Then nothing was retried, and the cases are different tests with one address, such as
        `a/b.py::test_c` and `a.py::b::test_c`.
        """
        if declared is None or declared == cases:
            return MergedRetries()
        again = self._passed_again.values()
        return MergedRetries(
            (), [case for case in again if case.outcome == "passed"], self._repeated
        )


class GoReruns:
    """Merges reruns in suites of gotestsum: with `--rerun-fails` each attempt is a case.

    With `-count=2` each repeat is a case, too, and its failures count. The tests that never
    failed show the difference: only failed tests are rerun. gotestsum writes the failed cases
    of a suite first.
    """

    def __init__(self) -> None:
        self._is_rerun = False
        """Whether a test that never failed ran once."""
        self._is_repeated = False
        """Whether a test that never failed ran twice."""
        self._suites: list[_GoPackage] = []

    def start_suite(self) -> None:
        """Start a suite: a package has one for all its runs."""
        self._suites.append(_GoPackage())

    def add(self, address: tuple[str, str], outcome: Outcome, case: JUnitCase | None) -> None:
        """Add the next case of the suite; `case` is needed only for failures."""
        suite, name = self._suites[-1], address[1]
        if case is not None:
            suite.failed[name].append(case)
            self._is_repeated |= hash(name) in suite.once
        elif name in suite.failed or any(suite.iterate_failed_parents(name)):
            suite.passed[name] += outcome == "passed"
        elif hash(name) in suite.once:
            self._is_repeated = True
        else:
            suite.once.add(hash(name))
            self._is_rerun = True

    def merge(self) -> list[MergedRetries]:
        """Return the retries; none unless the file proves that failed tests were rerun."""
        if self._is_repeated or not self._is_rerun or any(s.repeats for s in self._suites):
            return []
        return [suite.merge() for suite in self._suites]


class _GoPackage:
    """The runs of a package's failed tests and their subtests."""

    def __init__(self) -> None:
        self.failed: dict[str, list[JUnitCase]] = defaultdict(list)
        self.passed: Counter[str] = Counter()
        self.once: set[int] = set()
        """Hashes of the tests that never failed and have no failed parent."""

    def iterate_failed_parents(self, name: str) -> Iterator[str]:
        return (parent for parent in _iterate_parents(name) if parent in self.failed)

    @property
    def repeats(self) -> bool:
        """Whether a test passed twice, although reruns end with the first pass."""
        leaves = self.failed.keys() - self._count_explained().keys()
        return any(self.passed[n] > 1 for n in leaves if not any(self.iterate_failed_parents(n)))

    def merge(self) -> MergedRetries:
        explained = self._count_explained()
        recovered = [name for name in self.failed if self._has_recovered(name, explained)]
        dropped = [case for cases in self.failed.values() for case in cases[:-1]]
        dropped += [self.failed[name][-1] for name in recovered]
        flaky = (self.failed[name][0]._replace(outcome="passed", flaky=True) for name in recovered)
        kept = len(recovered) + sum(name not in self.failed for name in +self.passed)
        return MergedRetries(dropped, tuple(flaky), self.passed.total() - kept)

    def _has_recovered(self, name: str, explained: Mapping[str, int]) -> bool:
        """Return whether a later pass follows each failure of a test.

        A failed test is rerun until it passes. Its parents get a result with each rerun: they
        fail once at first, and then only with the test. A parent that failed more often has a
        failure without a subtest, perhaps after its last pass.
        """
        failures = len(self.failed[name])
        return self.passed[name] > 0 and failures <= explained.get(name, failures)

    def _count_explained(self) -> dict[str, int]:
        """Return how often tests with failed subtests fail because of the subtests' reruns."""
        parents = {parent for name in self.failed for parent in self.iterate_failed_parents(name)}
        explained = dict.fromkeys(parents, 1)
        for leaf in self.failed.keys() - parents:
            for parent in self.iterate_failed_parents(leaf):
                explained[parent] += len(self.failed[leaf]) - 1
        return explained


def _iterate_parents(name: str) -> Iterator[str]:
    """Yield the names of a subtest's parents, closest first."""
    end = name.rfind("/")
    for _ in range(_MAX_DEPTH):
        if end < 0:
            return
        yield name[:end]
        end = name.rfind("/", 0, end)
