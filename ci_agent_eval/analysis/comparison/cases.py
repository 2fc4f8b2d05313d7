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

    A test in another file or with another name is the same test if its scenario lost no other.
    `left_out` has the scenarios and cases that a change has not affected.
    """
    # Results of an older plugin have no values of parameters.
    by_value = all(record.case or "[" not in (record.nodeid or "") for record in before)
    old, new = _collect_cases(before, by_value=by_value), _collect_cases(after, by_value=by_value)
    gone, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    moved = dict(zip(gone, added, strict=False))
    vanished: set[str] = set()
    for test, cases in old.items():
        if (now := moved.get(test, test)) in new:
            vanished |= cases.keys() - new[now].keys()
        else:
            vanished.add(test)
        vanished -= {case for case, name in cases.items() if name in left_out}
    return tuple(sorted(vanished))


def find_moved_test(
    before: Iterable[EpisodeRecord], after: Iterable[EpisodeRecord]
) -> tuple[str, str] | None:
    """Return the files of a scenario in the baseline and in the head, if it has moved."""
    old, new = (
        {record.nodeid.partition("::")[0] for record in side if record.nodeid}
        for side in (before, after)
    )
    return (old.pop(), new.pop()) if len(old) == len(new) == 1 and old != new else None


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
