"""The plugin's fixtures, which its module of hooks imports, and the session that they use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.parts import get_parts

if TYPE_CHECKING:
    from ci_agent_eval.authoring.agent_runner import AgentRunner
    from ci_agent_eval.authoring.conversations.runner import ConversationContext
    from ci_agent_eval.authoring.simulation import Simulation
    from ci_agent_eval.authoring.text_judges import LLMAssert, LLMScore
    from ci_agent_eval.pytest_plugin.session import EpisodeSession
    from ci_agent_eval.recording import EpisodeRecorder


def get_session(config: pytest.Config) -> EpisodeSession:
    """Return the session's episodes; the first call imports the contract."""
    if (found := get_parts(config).episodes) is not None:
        return found
    options.require_pydantic()
    from ci_agent_eval.pytest_plugin import run, session  # noqa: PLC0415 - inert until used

    run.start_reports(config)
    run.watch_tests(config)
    started = session.EpisodeSession.for_process(config)
    # What is imported now stays. pytest collects all garbage twice at its end, which took a
    # tenth of a small run. Hypothesis warns if the collector does not see what holds its
    # source of random numbers.
    if "hypothesis" not in sys.modules:
        gc.freeze()
    return started


@pytest.fixture
def episode_clock() -> Callable[[], float]:
    """Clock of the `episode` fixture, in seconds; override it to control the time."""
    from ci_agent_eval.contract.clock import read_clock  # noqa: PLC0415 - inert until used

    return read_clock


@pytest.fixture
def episode_alone() -> None:
    """Run a test alone because it, or one of its fixtures, changes process-wide state."""


@pytest.fixture(name=detection.RECORDER)
def _recorder_fixture(
    request: pytest.FixtureRequest, episode_clock: Callable[[], float]
) -> Generator[EpisodeRecorder, None, None]:
    from ci_agent_eval.pytest_plugin.episodes.traffic import watch_model_calls  # noqa: PLC0415 - inert until used

    recorder = get_session(request.config).build_recorder(
        request.node, episode_clock, request.getfixturevalue
    )
    with watch_model_calls(request.node, recorder, episode_clock):
        yield recorder


@pytest.fixture
def episode(_agent_eval_recorder: EpisodeRecorder) -> EpisodeRecorder:
    """Record this test's episode: turns, tool calls, checks, scores, budgets."""
    return _agent_eval_recorder


@pytest.fixture
def model_environment(episode: EpisodeRecorder) -> Generator[Mapping[str, str], None, None]:
    """Variables with which a subprocess's model calls become part of this test's episode."""
    from ci_agent_eval.pytest_plugin.episodes.traffic import serve_subprocesses  # noqa: PLC0415 - inert until used

    with serve_subprocesses(episode) as variables:
        yield variables


@pytest.fixture
def aitest_run(
    request: pytest.FixtureRequest, episode: EpisodeRecorder
) -> Generator[AgentRunner, None, None]:
    """Run agents of the engine; their turns, tool calls, tokens and cost become the episode."""
    from ci_agent_eval.pytest_plugin.episodes.agents import (  # noqa: PLC0415 - inert until used
        record_agent_runs,
    )

    with record_agent_runs(request.node, episode) as runs:
        yield runs


@pytest.fixture
def llm_assert(request: pytest.FixtureRequest) -> LLMAssert:
    """Judge whether a text meets a criterion, such as "is a greeting"."""
    from ci_agent_eval.authoring.text_judges import LLMAssert  # noqa: PLC0415 - inert until used
    from ci_agent_eval.pytest_plugin.episodes import text_judges  # noqa: PLC0415 - as above

    return LLMAssert(*text_judges.find_judge(request.config))


@pytest.fixture
def llm_score(request: pytest.FixtureRequest) -> LLMScore:
    """Grade a text for each dimension of a rubric."""
    from ci_agent_eval.authoring.text_judges import LLMScore  # noqa: PLC0415 - inert until used
    from ci_agent_eval.pytest_plugin.episodes import text_judges  # noqa: PLC0415 - as above

    return LLMScore(*text_judges.find_judge(request.config))


@pytest.fixture
def _agent_eval_run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    """Run an awaitable to completion on the loop that the episodes of the process share."""
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop  # noqa: PLC0415 - inert until used

    return SessionLoop.find(request.config).run_awaitable


@pytest.fixture
def simulation(episode: EpisodeRecorder) -> Simulation:
    """Let simulated users talk to an app, in this test's episode and its budget of turns."""
    from ci_agent_eval.authoring.simulation import Simulation  # noqa: PLC0415 - inert until used

    return Simulation(episode)


@pytest.fixture(name="_agent_eval_conversation")
def _conversation_fixture(
    request: pytest.FixtureRequest, _agent_eval_recorder: EpisodeRecorder
) -> Generator[ConversationContext, None, None]:
    from ci_agent_eval.authoring.conversations.runner import ConversationContext  # noqa: PLC0415 - inert until used
    from ci_agent_eval.pytest_plugin.episodes import marker  # noqa: PLC0415 - as above

    conversation = ConversationContext(_agent_eval_recorder)
    yield conversation
    marker.end_conversation(request.node, conversation.cleanup_errors)
