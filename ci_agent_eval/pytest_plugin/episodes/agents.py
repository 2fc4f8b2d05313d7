"""The fixture `aitest_run`: runs of the engine, recorded in the test's episode."""

from __future__ import annotations

import os
from collections.abc import Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.collection.iterations import get_shared_case
from ci_agent_eval.pytest_plugin.collection.shared_conversations import MEMBER, ConversationMember
from ci_agent_eval.pytest_plugin.concurrency import AT_END
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import require_await
from ci_agent_eval.redaction import Redactor

if TYPE_CHECKING:
    from ci_agent_eval.authoring.agent_runner import AgentRunner
    from ci_agent_eval.checks.judge_questions import Answer, JudgeQuestion
    from ci_agent_eval.engine import (
        AgentResult,
        EngineSession,
        RunLimits,
    )
    from ci_agent_eval.engine.cassette import CassetteSession, CassetteStore
    from ci_agent_eval.engine.judge_models import JudgeModels
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop

ENGINE = pytest.StashKey["SharedEngine"]()


@dataclass(frozen=True)
class SharedEngine:
    """The engine that the episodes of a process share."""

    session: EngineSession
    store: CassetteStore


class AgentRunError(Exception):
    """A run that ended with an infrastructure error; the episode is an error, not a failure.

    `result` holds everything that happened.
    """

    def __init__(self, result: AgentResult) -> None:
        super().__init__(f"{result.stop_reason}: {result.error}")
        self.result = result


@dataclass
class EpisodeServers:
    """The servers that an episode uses, released when its test has ended."""

    engine: EngineSession
    episode_id: str
    _released: bool = False
    _error: Exception | None = None

    @property
    def is_released(self) -> bool:
        """Whether they were released without an error."""
        return self._released and self._error is None

    async def release_early(self) -> None:
        """Release them now; the teardown reports an error."""
        try:
            await self.release()
        except Exception as error:  # noqa: BLE001 - see above
            self._error = error

    async def release(self) -> None:
        """Release them unless that is done; raises the error of this or an earlier attempt."""
        if self._error is not None:
            raise self._error
        if not self._released:
            self._released = True
            await self.engine.end_episode(self.episode_id)


@contextmanager
def open_cassette(item: pytest.Item, recorder: EpisodeRecorder) -> Iterator[CassetteSession | None]:
    """Open the episode's cassette; None if cassettes are off. Raises InputError."""
    if options.get_cassette_mode(item.config) == "off":
        yield None
        return
    folder = options.get_cassette_dir(item.config, item.path)
    store = _get_engine(item.config).store
    case = get_shared_case(item)
    with store.episode(
        item.nodeid, folder, recorder.scenario_id, recorder.iteration, case
    ) as cassette:
        if (running := item.stash[EPISODE].running) is not None:
            running.cassette = cassette
        yield cassette


def set_placeholder_keys(config: pytest.Config) -> None:
    """Give the SDKs of model APIs a key until the end of the session, where they have none."""
    from ci_agent_eval.model_traffic.gateway.providers import build_placeholder_keys  # noqa: PLC0415 - inert until used

    added = build_placeholder_keys(os.environ)
    os.environ.update(added)

    def remove_keys() -> None:
        for name in added:
            os.environ.pop(name, None)

    config.add_cleanup(remove_keys)


def _get_engine(config: pytest.Config) -> SharedEngine:
    if ENGINE not in config.stash:
        config.stash[ENGINE] = _open_engine(config)
    return config.stash[ENGINE]


@contextmanager
def record_agent_runs(item: pytest.Item, recorder: EpisodeRecorder) -> Iterator[AgentRunner]:
    """Yield the fixture's function, with the process's engine session and the test's cassette."""
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop  # noqa: PLC0415 - inert until used

    engine, loop = _get_engine(item.config), SessionLoop.find(item.config)
    engine.session.begin_episode(item.nodeid)
    servers = EpisodeServers(engine.session, item.nodeid)
    # Another episode may need its servers before the teardown of this one.
    item.stash.setdefault(AT_END, []).append(servers.release_early)
    try:
        yield RecordedRuns(recorder, engine.session, loop, item.nodeid, _begin_member(item))
    finally:
        if not servers.is_released:  # skip an empty await: the loop has other tasks
            loop.run(servers.release())


def _begin_member(item: pytest.Item) -> ConversationMember | None:
    """Begin an attempt of a test of a session; None for other tests."""
    member = item.stash.get(MEMBER, None)
    if member is not None:
        member.conversation.begin_test(member.test)
    return member


def _open_engine(config: pytest.Config) -> SharedEngine:
    from ci_agent_eval.engine import EngineSession  # noqa: PLC0415 - inert until used
    from ci_agent_eval.engine.cassette import CassetteStore  # noqa: PLC0415 - as above
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop  # noqa: PLC0415 - as above
    from ci_agent_eval.steering.settings_loader import load_steering_settings  # noqa: PLC0415 - as above

    parts = get_parts(config)
    episodes: Any = parts.episodes
    budgets = parts.budgets
    mode: Any = options.get_cassette_mode(config)
    store = CassetteStore(
        mode,
        Redactor.from_environ(os.environ),
        rules=options.get_cassette_rules(config),
        has_tools=options.has_cassette_tools(config),
        allowed_hosts=config.getini("cassette_allowed_hosts"),
    )
    session = EngineSession(
        environ=os.environ,
        clock=read_clock,
        cassette_mode=mode,
        cassettes=store,
        on_secrets=episodes.files.add_secrets,
        steering=load_steering_settings(
            root=config.rootpath,
            environ=os.environ,
            enabled=config.option.pytest_full_suite_steering,
        ),
        on_usage=None if budgets is None else budgets.record_run,
    )
    # The first user of the engine may be a test that already runs on the loop.
    session.open()
    SessionLoop.find(config).close_with(lambda: session.__aexit__(None, None, None))
    return SharedEngine(session, store)


@dataclass(frozen=True)
class RecordedRuns:
    """The fixture `aitest_run`: a function whose runs become the test's episode.

    Authors know it as `AgentRunner`.
    """

    recorder: EpisodeRecorder
    engine: EngineSession
    loop: SessionLoop
    episode_id: str
    member: ConversationMember | None = None
    """Its place in the conversation of a session."""

    def __repr__(self) -> str:
        """Return a short text: pytest shows it with each failure."""
        return f"<aitest_run of {self.recorder.scenario_id!r}>"

    def __call__(
        self, agent: object, prompt: str | Sequence[Any], **options: Any
    ) -> Coroutine[Any, Any, AgentResult]:
        """Run an agent and record its turns in the episode, within the episode's hard budgets.

        `messages` default to those of the test's session, if it has one. The other arguments are
        those of `AgentRunner`, as `ci_agent_eval.engine.aitest_run` takes them. A run that ends
        with an infrastructure error raises AgentRunError, unless `raises` is False. A run that
        ends without an answer fails the episode, unless `allowed_stops` or the marker's argument
        names its stop reason. An episode that does not await it fails.
        """
        return require_await("aitest_run", self._run(agent, prompt, **options))

    async def _run(
        self,
        agent: object,
        prompt: str | Sequence[Any],
        *,
        messages: Sequence[Any] | None = None,
        raises: bool = True,
        allowed_stops: str | Collection[str] = (),
        **run_options: Any,
    ) -> AgentResult:
        from ci_agent_eval.contract.fields import validate_value  # noqa: PLC0415 - as above
        from ci_agent_eval.contract.stops import AllowedStops  # noqa: PLC0415 - as above
        from ci_agent_eval.engine import aitest_run  # noqa: PLC0415 - inert until used

        if not self.loop.is_running:
            raise InputError(
                f"episode {self.recorder.scenario_id!r}: aitest_run needs the event loop of this "
                "plugin; await it in an `async def` test or fixture, not in a thread or "
                "`asyncio.run`, and not on trio"
            )
        if messages is None and self.member is not None:
            messages = self.member.get_messages()
        stops = {
            *validate_value("aitest_run", "allowed_stops", AllowedStops, allowed_stops),
            *self.recorder.allowed_stops,
        }
        result = await aitest_run(
            agent,
            prompt,
            messages=messages,
            session=self.engine,
            limits=self._compute_limits(),
            episode_id=self.episode_id,
            observer=self._record,
            faults=self.recorder.faults,
            allowed_stops=stops,
            **run_options,
        )
        if self.member is not None:
            self.member.add_result(result)
        if raises and result.outcome == "error":
            raise AgentRunError(result)
        return result

    async def judge(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask the question's model. Raises JudgeError and InputError."""
        from ci_agent_eval.engine.judge import ask_judge  # noqa: PLC0415 - inert until used

        return await ask_judge(question, self._judge_models())

    async def judge_model(self, model: object) -> Any:
        """Return a judge's model, rate limited, replayed and counted. Raises InputError."""
        from ci_agent_eval.engine.judge_models import parse_judge_model  # noqa: PLC0415 - inert until used

        return await self._judge_models().build(parse_judge_model(model))

    def _judge_models(self) -> JudgeModels:
        from ci_agent_eval.engine.judge_models import JudgeModels  # noqa: PLC0415 - inert until used

        return JudgeModels(self.engine, self.episode_id, self.recorder)

    def _compute_limits(self) -> RunLimits:
        """Return the limits that remain of the hard budgets after the turns so far."""
        from ci_agent_eval.engine import RunLimits  # noqa: PLC0415 - inert until used

        return RunLimits.from_budgets(self.recorder.budgets).subtract_turns(
            self.recorder.trajectory
        )

    def _record(self, result: AgentResult) -> None:
        from ci_agent_eval.model_traffic.pricing import get_price_table  # noqa: PLC0415 - inert until used

        self.recorder.record_run(
            result.turns,
            stop_reason=result.stop_reason,
            error=result.error,
            allowed_stops=result.allowed_stops,
            needs_turn=result.needs_turn,
            rate_limited=result.rate_limited,
            # The cassette counts over all runs of the episode.
            cassette_misses=result.cassette.misses - self.recorder.cassette_misses,
            agents=result.trajectory.agents,
            traffic=result.traffic,
        )
        # An adapter that does not know its agent's tools returns none.
        self.recorder.note_conditions(
            tools=tuple(sorted(set(result.available_tools))) or None,
            prices=None if result.cost_usd is None else get_price_table(),
            instructions=result.instructions,
        )
        self.recorder.agent = self.recorder.agent or result.agent
        self.recorder.model = self.recorder.model or result.model
