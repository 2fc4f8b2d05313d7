"""Mistakes that a type checker must find: an ignore without its error is an error itself."""

from __future__ import annotations

from desk import DiagramAgent

from ci_agent_eval import (
    AgentRunner,
    AsyncAgentUnderTest,
    EpisodeRecorder,
    Reply,
    Simulation,
    check,
    conversation,
)


@conversation("Wrong names")
async def test_names(agent: AsyncAgentUnderTest[DiagramAgent]) -> None:
    agent.wrapped.boxs.append("x")  # type: ignore[attr-defined]
    await agent.send(5)  # type: ignore[arg-type]
    assert agent.send("not awaited").text  # type: ignore[attr-defined]


def test_values(episode: EpisodeRecorder, simulation: Simulation) -> None:
    with episode.turn("Hi") as turn:
        turn.reply("Hello", tokens="12")  # type: ignore[arg-type]
    check(episode)  # type: ignore[call-overload]
    simulation()  # type: ignore[call-arg]


async def test_run(aitest_run: AgentRunner) -> None:
    result = await aitest_run(Reply, "Hi", max_turn=3)  # type: ignore[call-arg]
    assert result.final_respons  # type: ignore[attr-defined]


Reply(text=5)  # type: ignore[arg-type]
