"""The cases of a scenario: its tests and their parameters, in the baseline and in the head."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.iteration_range import IterationRange, remove_iteration


def find_vanished_cases(
    before: Collection[EpisodeRecord], after: Collection[EpisodeRecord], left_out: Collection[str]
) -> tuple[str, ...]:
    """Return the cases of the baseline that the head has no more, as texts.

    A test in another file or with another name is the same test; one with both is not.
    `left_out` has the scenarios and cases that a change has not affected.
    """
    # Results of an older plugin have no values of parameters.
    by_value = all(record.case or "[" not in (record.nodeid or "") for record in before)
    old, new = _collect_cases(before, by_value=by_value), _collect_cases(after, by_value=by_value)
    moved = _match_moved_tests(old.keys() - new.keys(), new.keys() - old.keys())
    vanished: set[str] = set()
    for test, cases in old.items():
        if (now := moved.get(test, test)) in new:
            vanished |= cases.keys() - new[now].keys()
        else:
            vanished.add(test)
        vanished -= {case for case, name in cases.items() if name in left_out}
    return tuple(sorted(vanished))


def _match_moved_tests(gone: Collection[str], added: Collection[str]) -> Mapping[str, str]:
    """Return the present name of each test that kept its function's name, else its file."""
    moved: dict[str, str] = {}
    for part in (2, 0):
        free = {test.partition("::")[part]: test for test in sorted(set(added) - {*moved.values()})}
        for test in sorted(set(gone) - moved.keys()):
            if (now := free.pop(test.partition("::")[part], None)) is not None:
                moved[test] = now
    return moved


def find_moved_test(
    before: Iterable[EpisodeRecord], after: Iterable[EpisodeRecord]
) -> tuple[str, str] | None:
    """Return the files of a scenario in the baseline and in the head, if its test has moved."""
    old, new = (
        {record.nodeid.partition("[")[0] for record in side if record.nodeid}
        for side in (before, after)
    )
    moved = _match_moved_tests(old, new).items()
    files = {tuple(test.partition("::")[0] for test in pair) for pair in moved}
    (before_file, file), *others = files or {("", "")}
    return (before_file, file) if not others and before_file != file else None


def _collect_cases(
    records: Iterable[EpisodeRecord], *, by_value: bool
) -> Mapping[str, Mapping[str, str]]:
    """Return the cases of each test function, each with its name in `left_out`."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for record in records:
        if record.nodeid is not None:
            limits = IterationRange(record.iterations, record.minimum_iterations)
            nodeid = remove_iteration(record.nodeid, record.iteration, limits)
            test, bracket, rest = nodeid.partition("[")
            shown = (record.case if by_value else None) or bracket + rest
            found[test][shown] = record.scenario_id + bracket + rest
    return found
