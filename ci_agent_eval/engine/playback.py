"""The result of an agent's run that a playback gives; no model and no tool is called."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import AgentStop
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.recording.playback import EpisodePlayback


def play_run(
    playback: EpisodePlayback,
    prompt: str | Sequence[Any],
    messages: Sequence[Any] | None,
    allowed_stops: Collection[AgentStop],
) -> AgentResult:
    """Return the next recorded answer as the result of a run. Raises InputError without one."""
    play, answer = playback.play, playback.take_answer(_render_prompt(prompt) or None)
    agents = play.trajectory.agents if any(turn.agent for turn in answer.turns) else ()
    return AgentResult(
        trajectory=Trajectory(turns=answer.turns, agents=agents),
        stop_reason=answer.stop_reason,
        error=None if answer.stop_reason == "completed" else "as recorded",
        duration_ms=math.fsum(turn.latency_ms or 0.0 for turn in answer.turns),
        messages=(*(messages or ()), *_build_messages(answer.turns)),
        available_tools=play.tools,
        agent=play.agent,
        model=play.model,
        allowed_stops=frozenset(allowed_stops),
    )


def _render_prompt(prompt: str | Sequence[Any]) -> str:
    """Return the text of a prompt as its recorded turn has it. Raises InputError."""
    if isinstance(prompt, str):
        return clean_text(prompt)
    from ci_agent_eval.engine.prompt_parts import parse_prompt_parts, render_parts  # noqa: PLC0415 - an extra

    return render_parts(parse_prompt_parts(prompt))


def _build_messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return the turns as messages with `role` and `content`."""
    return [{"role": turn.role, "content": turn.content} for turn in turns if turn.content]
