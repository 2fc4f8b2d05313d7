"""Comparison of two experiments, test by test. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.experiments.records import Experiment, ExperimentResult

_LATEST = re.compile(r"latest(?:~([0-9]{1,6}))?")
SHORTEST_ID = 8


@dataclass(frozen=True, slots=True)
class ResultChange:
    """A test with a different result: its outcomes and the scores that differ."""

    nodeid: str
    before: str | None
    """Outcome in the first experiment; None if the test was not in it."""
    after: str | None
    reason: str | None
    """Reason of the outcome in the second experiment."""
    scores: Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class ExperimentComparison:
    """The differences between a first and a second experiment."""

    base: Experiment
    other: Experiment
    changes: tuple[ResultChange, ...]
    """By node id."""
    unchanged: int
    means: Mapping[str, tuple[float | None, float | None]]
    """The mean of each score in both experiments, by the score's name."""

    @property
    def worse(self) -> tuple[ResultChange, ...]:
        """Tests that passed in the first experiment only."""
        return tuple(
            c for c in self.changes if c.before == "passed" and c.after not in {"passed", None}
        )

    @property
    def better(self) -> tuple[ResultChange, ...]:
        """Tests that passed in the second experiment only."""
        return tuple(
            c for c in self.changes if c.after == "passed" and c.before not in {"passed", None}
        )


def find_experiment(experiments: Sequence[Experiment], named: str) -> Experiment:
    """Return the experiment with a name, an id or its prefix, or `latest`, `latest~1` and so on.

    `experiments` are sorted, the latest first. Raises InputError for no match or several.
    """
    found = [e for e in experiments if named in {e.name, e.uid}]
    if not found and len(named) >= SHORTEST_ID:
        found = [e for e in experiments if e.uid.startswith(named)]
    if not found and (match := _LATEST.fullmatch(named)) is not None:
        index = int(match[1] or 0)
        found = list(experiments[index : index + 1])
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(e.uid for e in found[:5])
        raise InputError(f"experiment {named!r}: {len(found)} are called so; give its id: {ids}")
    raise InputError(
        f"experiment {named!r}: there is none; give a name, an id, {SHORTEST_ID} or more of its "
        f"first characters, or `latest` (`agent-eval experiments list` shows them)"
    )


def compare_results(
    base: Experiment,
    other: Experiment,
    base_results: Iterable[ExperimentResult],
    other_results: Iterable[ExperimentResult],
) -> ExperimentComparison:
    """Compare the results of two experiments."""
    before = {result.nodeid: result for result in base_results}
    after = {result.nodeid: result for result in other_results}
    nodeids = sorted({*before, *after})
    found = [_compare_result(nodeid, before.get(nodeid), after.get(nodeid)) for nodeid in nodeids]
    changes = tuple(c for c in found if c.before != c.after or c.scores)
    names = sorted({s.name for r in (*before.values(), *after.values()) for s in r.scores})
    means = {name: (_compute_mean(before, name), _compute_mean(after, name)) for name in names}
    return ExperimentComparison(base, other, changes, len(found) - len(changes), means)


def _compare_result(
    nodeid: str, before: ExperimentResult | None, after: ExperimentResult | None
) -> ResultChange:
    old, new = _get_scores(before), _get_scores(after)
    pairs = {name: (old.get(name), new.get(name)) for name in sorted({*old, *new})}
    return ResultChange(
        nodeid=nodeid,
        before=None if before is None else before.outcome,
        after=None if after is None else after.outcome,
        reason=None if after is None else after.reason,
        scores={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
    )


def _get_scores(result: ExperimentResult | None) -> dict[str, float]:
    return {} if result is None else {score.name: score.value for score in result.scores}


def _compute_mean(results: Mapping[str, ExperimentResult], name: str) -> float | None:
    values = [s.value for r in results.values() for s in r.scores if s.name == name]
    return math.fsum(values) / len(values) if values else None
