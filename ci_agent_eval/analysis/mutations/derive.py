"""The mutants of the recorded episodes of a run: the same for the same recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ci_agent_eval.analysis.mutations.answers import (
    contradict_answers,
    leak_secrets,
    swap_answers,
    truncate_answers,
)
from ci_agent_eval.analysis.mutations.calls import (
    change_arguments,
    drop_calls,
    reorder_calls,
    repeat_calls,
    skip_confirmations,
)
from ci_agent_eval.analysis.mutations.recorded_transcript import Mutant, RecordedTranscript
from ci_agent_eval.analysis.mutations.spending import exceed_budgets
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.iteration_range import IterationRange, remove_iteration
from ci_agent_eval.contract.mutations import MutationKind
from ci_agent_eval.contract.playback import PlannedTest, Play, PlaybackPlan

MAX_PLACES = 5
"""Changes of each kind in one recording; of more places, evenly spread ones are chosen."""


@dataclass(frozen=True)
class RecordedTest:
    """A test's recorded episode and its mutants."""

    nodeid: str
    """Without the iteration at its end."""
    episode: Episode
    mutants: tuple[Mutant, ...] = ()
    not_applicable: tuple[MutationKind, ...] = ()
    left_out: Mapping[MutationKind, int] = field(default_factory=lambda: MappingProxyType({}))
    """Number of places beyond the limit."""

    @property
    def has_passed(self) -> bool:
        """Whether the recording passed."""
        return self.episode.is_passing()


def derive_tests(episodes: Sequence[Episode]) -> tuple[RecordedTest, ...]:
    """Return the tests of a run, sorted by node id, with the mutants of those that passed.

    Of several iterations and attempts, the first that passed is taken.
    """
    found: dict[str, Episode] = {}
    for episode in sorted(episodes, key=lambda one: one.key):
        nodeid = find_base_nodeid(episode)
        known = found.get(nodeid)
        if known is None or (episode.is_passing() and not known.is_passing()):
            found[nodeid] = episode
    tests = [RecordedTest(nodeid, found[nodeid]) for nodeid in sorted(found)]
    passed = [test for test in tests if test.has_passed]
    return tuple(_add_mutants(test, passed) if test.has_passed else test for test in tests)


def find_base_nodeid(episode: Episode) -> str:
    """Return the node id of an episode's test without its iteration; without one, its scenario."""
    limits = IterationRange(episode.iterations, episode.minimum_iterations)
    return remove_iteration(episode.nodeid or episode.scenario_id, episode.iteration, limits)


def build_plan(tests: Sequence[RecordedTest]) -> PlaybackPlan:
    """Return the plays of the tests with mutants: first the recording, then each mutant."""
    return PlaybackPlan(
        tests=tuple(
            PlannedTest(nodeid=test.nodeid, plays=tuple(_list_plays(test)))
            for test in tests
            if test.mutants
        )
    )


def _list_plays(test: RecordedTest) -> Iterator[Play]:
    episode = test.episode
    trajectories = [_get_transcript(episode).trajectory, *(m.trajectory for m in test.mutants)]
    for trajectory in trajectories:
        yield Play(
            trajectory=trajectory,
            stop_reason=episode.stop_reason,
            agent=episode.agent,
            model=episode.model,
            tools=episode.conditions.tools or (),
        )


def _get_transcript(episode: Episode) -> RecordedTranscript:
    assert episode.trajectory is not None  # noqa: S101 - it has mutants
    return RecordedTranscript(episode.trajectory)


def _add_mutants(test: RecordedTest, passed: Sequence[RecordedTest]) -> RecordedTest:
    if test.episode.trajectory is None:
        return test
    recorded = _get_transcript(test.episode)
    mutants = {kind: tuple(mutate(recorded)) for kind, mutate in _KINDS.items()}
    mutants["swap_answers"] = tuple(swap_answers(recorded, _find_other_answer(test, passed)))
    chosen = {kind: _choose_places(found) for kind, found in mutants.items()}
    left_out = {kind: len(found) - len(chosen[kind]) for kind, found in mutants.items()}
    return RecordedTest(
        test.nodeid,
        test.episode,
        mutants=tuple(mutant for found in chosen.values() for mutant in found),
        not_applicable=tuple(kind for kind, found in mutants.items() if not found),
        left_out={kind: count for kind, count in left_out.items() if count},
    )


def _choose_places(found: Sequence[Mutant]) -> Sequence[Mutant]:
    """Return all mutants of a kind, or evenly spread ones with the first and the last."""
    if len(found) <= MAX_PLACES:
        return found
    return [found[n * (len(found) - 1) // (MAX_PLACES - 1)] for n in range(MAX_PLACES)]


def _find_other_answer(
    test: RecordedTest, passed: Sequence[RecordedTest]
) -> tuple[str, str] | None:
    """Return the next other scenario by node ids, and its last answer.

    No test of the same scenario, such as one of another variant, may have given that answer: it
    would be right.
    """
    place, scenario_id = passed.index(test), test.episode.scenario_id
    own = {_get_last_answer(one) for one in passed if one.episode.scenario_id == scenario_id}
    others = (*passed[place + 1 :], *passed[:place])
    answers = ((other.episode.scenario_id, _get_last_answer(other)) for other in others)
    return next(((name, answer) for name, answer in answers if answer not in {"", *own}), None)


def _get_last_answer(test: RecordedTest) -> str:
    if test.episode.trajectory is None:
        return ""
    return next((a.text for a in reversed(_get_transcript(test.episode).replies)), "")


_KINDS: dict[MutationKind, Callable[[RecordedTranscript], Iterator[Mutant]]] = {
    "drop_call": drop_calls,
    "repeat_call": repeat_calls,
    "reorder_calls": reorder_calls,
    "change_argument": change_arguments,
    "skip_confirmation": skip_confirmations,
    "contradict_answer": contradict_answers,
    "truncate_answer": truncate_answers,
    "leak_secret": leak_secrets,
    "exceed_budget": exceed_budgets,
}
