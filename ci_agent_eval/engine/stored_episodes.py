"""Judging of episodes that have ended: their checks ask models as in a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.checks.judge_questions import Answer, JudgeQuestion
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.engine.judge import ask_judge
from ci_agent_eval.engine.judge_models import JudgeModels, parse_judge_model
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.active_episode import RunningEpisode, bind_context


@dataclass(frozen=True, slots=True)
class _OwnLoop:
    """The loop that the caller runs on."""

    is_running: bool = True


@dataclass(frozen=True, slots=True)
class StoredEpisodeEngine:
    """The engine fixture of an episode that has ended."""

    models: JudgeModels
    loop: _OwnLoop = _OwnLoop()

    async def judge(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask the question's model. Raises JudgeError and InputError."""
        return await ask_judge(question, self.models)

    async def judge_model(self, model: object) -> Any:
        """Return a judge's model, rate limited, replayed and counted. Raises InputError."""
        return await self.models.build(parse_judge_model(model))


@contextmanager
def judge_stored_episode(
    episode: Episode, session: EngineSession, episode_id: str
) -> Iterator[EpisodeRecorder]:
    """Let checks in this context ask models for an episode; yield the recorder of their usage.

    What they ask with any client is on the episode's cassette.
    """
    recorder = EpisodeRecorder(build_initial_episode(episode.scenario_id), clock=lambda: 0.0)
    engine = StoredEpisodeEngine(JudgeModels(session, episode_id, recorder))
    running = RunningEpisode("evaluation", recorder=recorder, fixture=lambda _: engine)
    bind_context(running)
    cassette = session.get_cassette_session(episode_id)
    calls = TrafficRecorder(session.clock, None if cassette is None else cassette.player)
    with hooks.use(), attribution.use_recorder(calls):
        yield recorder
