"""The model calls that tools of PydanticAI agents make: turns of nested agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.trajectory import TrajectoryAgent, Turn
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import TrafficTrajectory, build_trajectory
from ci_agent_eval.model_traffic.usage import ComputeCost

MAIN_AGENT = TrajectoryAgent(id="1")
"""The agent whose tools run the others."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """One call of a tool while it runs, with the model calls that it makes."""

    answer: int
    """Number of the answer that requested the call, from 1; 0: no tool made the model calls."""
    call_id: str | None
    name: str | None
    recorder: TrafficRecorder


def add_tool_turns(
    turns: Sequence[Turn], runs: Iterable[ToolRun], compute_cost: ComputeCost
) -> tuple[Sequence[Turn], tuple[TrajectoryAgent, ...]]:
    """Return the turns of an agent with those of the agents that its tools ran, and all agents.

    The turns of a nested agent follow the answer that requested the call. Without a model call in
    a tool the turns stay as they are, and there are no agents.
    """
    nested: dict[int, list[Turn]] = {}
    agents: list[TrajectoryAgent] = []
    for run in runs:
        found = build_trajectory(run.recorder.calls, compute_cost=compute_cost)
        if found.turns:
            count = sum(agent.parent == MAIN_AGENT.id for agent in agents)
            agents += _nest_agents(found, run, count)
            nested.setdefault(run.answer, []).extend(_nest_turns(found, count))
    if not agents:
        return turns, ()
    merged = nested.pop(0, [])
    answers = 0
    for turn in turns:
        merged.append(turn.model_copy(update={"agent": MAIN_AGENT.id}))
        if turn.role == "assistant":
            answers += 1
            merged += nested.pop(answers, ())
    rest = [turn for number in sorted(nested) for turn in nested[number]]
    return [*merged, *rest], (MAIN_AGENT, *agents)


def _nest_agents(found: TrafficTrajectory, run: ToolRun, count: int) -> Iterable[TrajectoryAgent]:
    for agent in found.agents or (MAIN_AGENT,):
        update = {"id": _nest_id(agent.id, count), "parent": _nest_id(agent.parent, count)}
        if agent.parent is None:
            update |= {"parent": MAIN_AGENT.id, "relation": "nested"}
            update |= {"name": run.name, "call_id": run.call_id}
        yield agent.model_copy(update=update)


def _nest_turns(found: TrafficTrajectory, count: int) -> Iterable[Turn]:
    for one in found.turns:
        # A prompt of the tool, which the user did not write.
        role = "system" if one.turn.role == "user" else one.turn.role
        agent = _nest_id(one.turn.agent or MAIN_AGENT.id, count)
        yield one.turn.model_copy(update={"role": role, "agent": agent})


def _nest_id(agent: str | None, count: int) -> str | None:
    """Return the id below the main agent, which has `count` nested agents already."""
    if agent is None:
        return None
    number, dot, rest = agent.partition(".")
    return f"{MAIN_AGENT.id}.{int(number) + count}{dot}{rest}"
