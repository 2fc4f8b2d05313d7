"""The model calls that the code of PydanticAI agents makes: turns of nested agents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter

from ci_agent_eval.contract.trajectory import TrajectoryAgent, Turn
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import ComputeCost, TrafficTrajectory, build_trajectory

MAIN_AGENT = TrajectoryAgent(id="1")
"""The agent whose tools run the others."""


_Place = tuple[int, float]
"""Number of marks before a turn, and of the tool calls before it."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """One call of a tool while it runs, with the model calls that it makes."""

    mark: int
    """Number of marks before it."""
    call_id: str | None
    name: str
    recorder: TrafficRecorder
    outside_calls: int
    """Number of the model calls outside of tools before it."""


@dataclass(eq=False)
class NestedCalls:
    """The model calls besides the agent's own requests: those in its tools and elsewhere.

    Outside of tools are those of functions that write instructions or validate the output.
    """

    outside: TrafficRecorder
    tool_runs: list[ToolRun] = field(default_factory=list)
    _marks: list[int] = field(default_factory=list)
    """Number of the model calls outside of tools before each request and each answer, in turns."""

    @property
    def calls(self) -> Sequence[ModelCall]:
        """The model calls so far, those of each tool call together."""
        in_tools = (call for run in self.tool_runs for call in run.recorder.calls)
        return (*self.outside.calls, *in_tools)

    @property
    def calls_since_answer(self) -> Sequence[ModelCall]:
        """The calls outside of tools after the agent's last answer."""
        answers = self._marks[1::2]
        return self.outside.calls[answers[-1] if answers else 0 :]

    def mark_request(self) -> None:
        """Mark the beginning of the agent's next request."""
        if not self._is_requesting:
            self._marks.append(len(self.outside.calls))

    def mark_answer(self) -> None:
        """Mark an answer of the agent."""
        self.mark_request()
        self._marks.append(len(self.outside.calls))

    @property
    def _is_requesting(self) -> bool:
        return len(self._marks) % 2 == 1

    def add_tool(self, call_id: str | None, name: str, recorder: TrafficRecorder) -> None:
        """Add a call of a tool, whose model calls `recorder` records."""
        outside = len(self.outside.calls)
        self.tool_runs.append(ToolRun(len(self._marks), call_id, name, recorder, outside))

    def add_turns(
        self, own: Sequence[Turn], compute_cost: ComputeCost
    ) -> tuple[Sequence[Turn], tuple[TrajectoryAgent, ...]]:
        """Return the agent's turns with those of the agents that its code ran, and all agents.

        The turns of a nested agent stand where they took place. Without nested model calls the
        turns stay as they are, and there are no agents.
        """
        placed = list(_place_turns(own))
        agents: list[TrajectoryAgent] = []
        for number, run in enumerate((None, *self.tool_runs)):
            calls = self.outside.calls if run is None else run.recorder.calls
            found = build_trajectory(calls, compute_cost=compute_cost)
            if found.turns:
                count = sum(agent.parent == MAIN_AGENT.id for agent in agents)
                agents += _nest_agents(found, run, count)
                for one in found.turns:
                    place = (run.mark, number) if run else self._find_place(one.call_number)
                    placed.append((place, _nest_turn(one.turn, count)))
        if not agents:
            return own, ()
        return [turn for _, turn in sorted(placed, key=itemgetter(0))], (MAIN_AGENT, *agents)

    def _find_place(self, call_number: int) -> _Place:
        """Return the place of a call outside of tools, which is after that of the last tool."""
        tools = bisect_left(self.tool_runs, call_number, key=attrgetter("outside_calls"))
        return bisect_left(self._marks, call_number), tools + 0.5


def _place_turns(own: Sequence[Turn]) -> Iterator[tuple[_Place, Turn]]:
    """Yield the turns with their places: prompts at the mark of a request, then its answer."""
    answers = 0
    for turn in own:
        is_answer = turn.role == "assistant"
        answers += is_answer
        place = 2 * answers + (not is_answer)
        yield (place, 0), turn.model_copy(update={"agent": MAIN_AGENT.id})


def _nest_agents(
    found: TrafficTrajectory, run: ToolRun | None, count: int
) -> Iterator[TrajectoryAgent]:
    for agent in found.agents or (MAIN_AGENT,):
        update = {"id": _nest_id(agent.id, count), "parent": _nest_id(agent.parent, count)}
        if agent.parent is None:
            update |= {"parent": MAIN_AGENT.id, "relation": "nested"}
            update |= {} if run is None else {"name": run.name, "call_id": run.call_id}
        yield agent.model_copy(update=update)


def _nest_turn(turn: Turn, count: int) -> Turn:
    # A prompt of the agent's code, which the user did not write.
    role = "system" if turn.role == "user" else turn.role
    agent = _nest_id(turn.agent or MAIN_AGENT.id, count)
    return turn.model_copy(update={"role": role, "agent": agent})


def _nest_id(agent: str | None, count: int) -> str | None:
    """Return the id below the main agent, which has `count` nested agents already."""
    if agent is None:
        return None
    number, dot, rest = agent.partition(".")
    return f"{MAIN_AGENT.id}.{int(number) + count}{dot}{rest}"
