"""The fixtures `llm_assert` and `llm_score`: how they reach a judge's model from any test."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.episodes.agents import RecordedRuns
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.active_episode import get_active_episode

if TYPE_CHECKING:
    from ci_agent_eval.checks.judge_questions import Answer, JudgeQuestion
    from ci_agent_eval.engine.judge_models import JudgeModels


@dataclass(frozen=True)
class TextJudgeSender:
    """Asks through the running episode, which records and counts it; else without a record."""

    config: pytest.Config

    def send(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask and wait, also on a running event loop. Raises JudgeError and InputError."""
        loop = SessionLoop.find(self.config)
        if not loop.is_occupied:
            return loop.run(self.send_async(question), context=copy_context())
        return self._send_apart(question)

    async def send_async(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask on the loop of the session. Raises JudgeError and InputError."""
        runs = self._find_episode_runs()
        if runs is not None and runs.loop.is_running:
            return await runs.judge(question)
        return await self._ask_in_session(question, runs)

    def _send_apart(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask on the loop of another thread, because the caller blocks this one."""
        runs = self._find_episode_runs()
        asked: Coroutine[Any, Any, Answer] = self._ask_in_session(question, runs)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(copy_context().run, asyncio.run, asked).result()

    async def _ask_in_session(
        self, question: JudgeQuestion[Answer], runs: RecordedRuns | None
    ) -> Answer:
        """Ask with connections that belong to this loop."""
        from ci_agent_eval.engine import EngineSession  # noqa: PLC0415 - inert until used
        from ci_agent_eval.engine.judge import ask_judge  # noqa: PLC0415 - as above
        from ci_agent_eval.engine.judge_models import JudgeModels  # noqa: PLC0415 - as above

        models: JudgeModels
        if runs is None:
            session = EngineSession(environ=os.environ, clock=read_clock)
            models = JudgeModels(
                session, "", EpisodeRecorder(build_initial_episode("judge"), clock=read_clock)
            )
        else:
            session = dataclasses.replace(runs.engine, servers=None)
            models = JudgeModels(session, runs.episode_id, runs.recorder)
        async with session:
            return await ask_judge(question, models)

    def _find_episode_runs(self) -> RecordedRuns | None:
        """Return the engine of the running episode; None in a test that is none."""
        running = get_active_episode()
        if running is None or running.fixture is None or running.recorder is None or running.ended:
            return None
        runs: RecordedRuns = running.fixture("aitest_run")
        return runs


def find_judge(config: pytest.Config) -> tuple[str, TextJudgeSender]:
    """Return the model of `--llm-model`, in PydanticAI's notation, and its sender."""
    name = options.get_llm_model(config)
    return name if ":" in name else name.replace("/", ":", 1), TextJudgeSender(config)
