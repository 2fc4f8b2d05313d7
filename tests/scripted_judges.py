"""Judges that follow a script: models of PydanticAI that answer the questions of our checks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.engine import EngineSession
from ci_agent_eval.engine.stored_episodes import judge_stored_episode


def build_judge(answer: Callable[[dict[str, str]], dict[str, Any]], name: str = "judge") -> Any:
    """Build a judge whose answer is a function of the sections of the prompt, by their tag."""

    def respond(messages: Any, info: Any) -> ModelResponse:
        (tool,) = info.output_tools
        prompt = messages[0].parts[-1].content
        found = re.findall(r"<(\w+)>\n(.*?)\n</\1>", prompt, re.DOTALL)
        return ModelResponse([ToolCallPart(tool.name, answer(dict(found)))])

    return FunctionModel(respond, model_name=name)


def judge_in_turn(*answers: dict[str, Any], name: str = "judge") -> Any:
    """Build a judge that gives these answers one after another."""
    listed: Iterator[dict[str, Any]] = iter(answers)
    return build_judge(lambda _: next(listed), name)


def grade(
    passed: bool = True, score: float | None = None, reason: str = "so it is"
) -> dict[str, Any]:
    return {"pass": passed, "score": float(passed) if score is None else score, "reason": reason}


def grades(reason: str = "overall", **scores: int) -> dict[str, Any]:
    listed = [{"name": k, "score": v, "reason": f"{k} is {v}"} for k, v in scores.items()]
    return {"grades": listed, "reason": reason}


def apply_check(check: Any, episode: Episode) -> Sequence[Assertion]:
    """Apply a judged check to an episode that has ended."""

    async def run() -> Sequence[Assertion]:
        async with EngineSession(environ={}, clock=lambda: 0.0) as session:
            with judge_stored_episode(episode, session, "judged"):
                return await check.assertions(episode)

    return asyncio.run(run())
