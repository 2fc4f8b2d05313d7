"""What models and agents did in an episode: its turns, some of which are calls, and its usage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import (
    Assertion,
    Episode,
    Gating,
    Mode,
    SideUsage,
    TrafficSummary,
)
from ci_agent_eval.contract.evidence import Evidence
from ci_agent_eval.contract.faults import Fault, check_declared_fault
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.stops import Stop
from ci_agent_eval.contract.trajectory import Trajectory, TrajectoryAgent, Turn
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.recording.budgets import build_value
from ci_agent_eval.recording.turn import TurnRecorder

if TYPE_CHECKING:
    from ci_agent_eval.recording.traffic import EpisodeTraffic, RecordedPart


Item = TypeVar("Item")


@dataclass
class EpisodeUsage:
    """The fields of an episode that count its usage and delays beside the turns."""

    judge: SideUsage | None = None
    simulated_user: SideUsage | None = None
    rate_limited: int = 0
    cassette_misses: int = 0

    def merge(self, episode: Episode) -> None:
        """Merge the usage of a finished episode; a value that it got from here counts once."""
        self.rate_limited = max(self.rate_limited, episode.rate_limited)
        self.cassette_misses = max(self.cassette_misses, episode.cassette_misses)
        if episode.judge is not None and episode.judge is not self.judge:
            self.judge = episode.judge + self.judge
        user = episode.simulated_user
        if user is not None and user is not self.simulated_user:
            self.simulated_user = user + self.simulated_user


class RecordedTurns:
    """The turns of an episode in order, with the one that is open."""

    traffic: EpisodeTraffic | None = None
    """The model calls of the test's code, which become turns, too; None: it can make none."""

    def __init__(self) -> None:
        self.parts: list[RecordedPart] = []
        """The turns, and the spans of model calls that stand for turns."""
        self.open_turn: TurnRecorder | None = None
        self._agents: tuple[TrajectoryAgent, ...] = ()
        self._run_traffic: TrafficSummary | None = None
        """The traffic of recorded runs."""

    def list_turns(self) -> tuple[Turn, ...]:
        """Return the turns so far, without the one that is still open."""
        if self.traffic is None:
            return tuple(part for part in self.parts if isinstance(part, Turn))
        return self.traffic.list_turns(self.parts)

    def build_trajectory(self) -> Trajectory:
        """Return the turns so far, with their totals."""
        seen = () if self.traffic is None else self.traffic.list_agents()
        agents = {agent.id: agent for agent in (*seen, *self._agents)}
        return Trajectory(turns=self.list_turns(), agents=tuple(agents.values()))

    def measure_usage(self) -> Usage:
        """Return the usage so far, with that of an open turn's model calls.

        Each model call is read once: building the turns anew takes time for all calls.
        """
        if self.traffic is None:
            return Usage.from_turns(self.list_turns())
        return self.traffic.measure_usage(self.parts, with_cost=True)[0]

    def open(self, turn: TurnRecorder) -> None:
        """Add the model calls since the last turn, and open the next one."""
        self._take_calls()
        self._set_open_turn(turn)

    def close(self, turn: TurnRecorder, turns: Sequence[Turn]) -> None:
        """Add the turns of the open turn, or the model calls within it."""
        traffic, has_reply = self.traffic, turn.has_reply
        span = traffic and traffic.take_span(turn.message, turns, has_reply=has_reply)
        self.parts += [span] if span else turns
        self._set_open_turn(None)

    def end_open_turn(self) -> str | None:
        """Close the open turn as broken; return its message if it was opened without `with`."""
        turn = self.open_turn
        if turn is not None and not turn.is_entered:
            return turn.message or ""
        if turn is not None:
            turn.close(broken=True)
        return None

    def add_run(
        self,
        turns: Sequence[Turn],
        agents: Sequence[TrajectoryAgent],
        traffic: TrafficSummary | None = None,
    ) -> None:
        """Add turns, agents and model traffic, such as those of a whole run."""
        self._take_calls()
        self._run_traffic = add_traffic(self._run_traffic, traffic)
        self._agents, turns = add_agents(self._agents, agents, turns)
        self.parts += turns

    def summarize_traffic(self, *, is_watched: bool) -> TrafficSummary | None:
        """Return the model traffic of all turns; None if it is unknown.

        `is_watched`: the test's code would have been seen to call a model.
        """
        if self.traffic is not None:
            return add_traffic(self._run_traffic, self.traffic.summarize(self.list_turns()))
        is_unseen = is_watched and self._run_traffic is None and lack_measurement(self.list_turns())
        return TrafficSummary(requests=0) if is_unseen else self._run_traffic

    def merge(self, trajectory: Trajectory | None) -> None:
        """Add the turns of a finished episode that are not yet known."""
        self._take_calls()
        self.parts += find_new_parts(
            self.list_turns(), () if trajectory is None else trajectory.turns
        )

    def find_traffic_stop(self) -> Stop | None:
        """Return why the agent did not finish by the model calls of the test's code."""
        if self.traffic is None:
            return None
        return self.traffic.find_stop(self.parts, self.list_turns())

    def _set_open_turn(self, turn: TurnRecorder | None) -> None:
        self.open_turn = turn
        if self.traffic is not None:
            self.traffic.is_turn_open = turn is not None

    def _take_calls(self) -> None:
        """Keep the model calls since the last recorded part as turns."""
        span = None if self.traffic is None else self.traffic.take_span()
        self.parts += [] if span is None else [span]


def lack_measurement(turns: Iterable[Turn]) -> bool:
    """Return whether a model answered, as far as is known, and no answer has tokens or cost."""
    answers = [turn for turn in turns if turn.role == "assistant"]
    return bool(answers) and all(
        turn.tokens is None and turn.cost_usd is None and turn.source in {None, "live"}
        for turn in answers
    )


def find_new_parts(known: Sequence[Item], returned: Sequence[Item]) -> list[Item]:
    """Return the items that are not yet known; items are compared by identity."""
    return [part for part in returned if not any(part is own for own in known)]


def merge_condition(old: object, new: object) -> object:
    """Merge a condition of two runs of one episode."""
    if old is None or new is None or old == new:
        return old if new is None else new
    if isinstance(old, tuple) and isinstance(new, tuple):
        return tuple(sorted({*old, *new}, key=str))
    return ", ".join(sorted({*str(old).split(", "), str(new)}))


def build_outcome_assertion(episode: Episode) -> list[Assertion]:
    """Return an assertion for a failed episode that has no failed assertion, else nothing."""
    if episode.outcome != "failed" or episode.failed_assertions:
        return []
    reason = episode.reason or "the episode says that it failed, and not why"
    return [Assertion(name="outcome", passed=False, reason=reason)]


def add_agents(
    known: Sequence[TrajectoryAgent], added: Sequence[TrajectoryAgent], turns: Sequence[Turn]
) -> tuple[tuple[TrajectoryAgent, ...], Sequence[Turn]]:
    """Return the agents of all runs, and the turns of the added run with their ids in the episode.

    An agent at the same place of the tree with the same name is the same agent; the others of the
    added run get new places.
    """
    places = {agent.id: (agent.name, agent.relation) for agent in known}
    found = {agent.id: (agent.name, agent.relation) for agent in added}
    if all(places.get(place, found[place]) == found[place] for place in found):
        return (*known, *(agent for agent in added if agent.id not in places)), turns
    first = max(int(agent.id.partition(".")[0]) for agent in known)

    def move(place: str | None) -> str | None:
        number, dot, rest = (place or "").partition(".")
        return None if place is None else f"{int(number) + first}{dot}{rest}"

    moved = (a.model_copy(update={"id": move(a.id), "parent": move(a.parent)}) for a in added)
    return (*known, *moved), [turn.model_copy(update={"agent": move(turn.agent)}) for turn in turns]


def add_traffic(own: TrafficSummary | None, other: TrafficSummary | None) -> TrafficSummary | None:
    """Add the model traffic of two runs."""
    if own is None or other is None:
        return own or other
    sums = {
        name: getattr(own, name) + getattr(other, name)
        for name in ("requests", "refused", "failed", "replayed", "unattributed")
    }
    names = {
        name: tuple(sorted({*getattr(own, name), *getattr(other, name)}))
        for name in ("unpriced_models", "vendor_priced_models")
    }
    return TrafficSummary(**sums, **names, is_shared=own.is_shared or other.is_shared)


class EpisodeFields(TypedDict, total=False):
    """Fields of an episode that are known before it starts."""

    was: tuple[str, ...]
    thread_id: str | None
    nodeid: str | None
    file: str | None
    line: int | None
    case: str | None
    iteration: int
    iterations: int
    minimum_iterations: int | None
    attempt: int
    mode: Mode
    gate: Gating
    evidence: Evidence | None
    min_pass_rate: float | None
    min_passes: int | None
    allowed_stops: Collection[str]
    faults: Sequence[Fault | Mapping[str, Any]]
    agent: str | None
    model: str | None
    budgets: Budgets | Mapping[str, Any]
    metadata: Mapping[str, Any]


def build_initial_episode(scenario_id: str, **fields: Unpack[EpisodeFields]) -> Episode:
    """Build an episode without turns. Raises InputError, which names the key."""
    known = {key: value for key, value in fields.items() if value is not None}
    if isinstance(known.get("metadata"), Mapping):
        known["metadata"] = to_jsonable(known["metadata"])
    episode = build_value("episode", Episode, scenario_id=scenario_id, **known)
    for number, fault in enumerate(episode.faults):
        build_value(f"episode: faults.{number}", check_declared_fault, fault=fault)
    return episode
