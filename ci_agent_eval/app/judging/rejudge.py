"""Apply checks and budgets, from a file that names them, to stored episodes."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ci_agent_eval.analysis.judge_agreement import JudgedAssertion, TranscriptKey
from ci_agent_eval.checks.base import Check
from ci_agent_eval.checks.conversion import as_check, validate_assertions
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Assertion, Conditions, Episode, SideUsage
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.engine.stored_episodes import judge_stored_episode
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.budgets import build_value, merge_budgets
from ci_agent_eval.recording.check_value import describe_failed_checks

EVERY_SCENARIO = "*"


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """Checks and budgets by patterns of scenario ids."""

    checks: Mapping[str, Sequence[Check]] = field(default_factory=dict)
    budgets: Mapping[str, Budgets] = field(default_factory=dict)

    def find_checks(self, scenario_id: str) -> tuple[Check, ...]:
        """Return the checks of all patterns that match a scenario."""
        return tuple(
            check
            for pattern, checks in self.checks.items()
            if fnmatchcase(scenario_id, pattern)
            for check in checks
        )

    def find_budgets(self, scenario_id: str) -> tuple[Budgets, ...]:
        """Return the budgets of all patterns that match a scenario."""
        return tuple(
            budgets
            for pattern, budgets in self.budgets.items()
            if fnmatchcase(scenario_id, pattern)
        )

    def require_used(self, scenarios: Iterable[str], source: object) -> None:
        """Raise InputError if a pattern matches no scenario, or has no check: it does nothing."""
        known = sorted(set(scenarios))
        for pattern in {**self.checks, **self.budgets}:
            if not any(fnmatchcase(scenario, pattern) for scenario in known):
                raise InputError(
                    f"{source}: {pattern!r} matches no scenario of the results; correct the "
                    "pattern, or name other results"
                )
            if pattern in self.checks and not self.checks[pattern]:
                raise InputError(
                    f"{source}: CHECKS[{pattern!r}] is empty; add a check, or remove the pattern"
                )


def load_plan(path: Path) -> JudgePlan:
    """Load `CHECKS` and `BUDGETS` from a Python file. Raises InputError."""
    values = _run_file(path)
    checks, budgets = values.get("CHECKS", ()), values.get("BUDGETS", {})
    if not checks and not budgets:
        raise InputError(f"{path}: has neither CHECKS nor BUDGETS; set at least one of them")
    by_pattern = checks if isinstance(checks, Mapping) else {EVERY_SCENARIO: checks}
    return JudgePlan(
        {
            pattern: _parse_checks(path, pattern, listed)
            for pattern, listed in (by_pattern if checks else {}).items()
        },
        _parse_budgets(path, budgets),
    )


def _run_file(path: Path) -> Mapping[str, Any]:
    spec = spec_from_file_location("agent_eval_judges", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: is not a Python file; name the file with CHECKS")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except AgentEvalError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        raise InputError(f"{path}: cannot be run: {describe_error(error)}") from error
    return vars(module)


def _parse_checks(path: Path, pattern: str, listed: object) -> tuple[Check, ...]:
    items = listed if isinstance(listed, list | tuple) else (listed,)
    found = []
    for item in items:
        check = as_check(item)
        if check is None:
            raise InputError(f"{path}: CHECKS[{pattern!r}]: {item!r} is not a check")
        found.append(check)
    return tuple(found)


def _parse_budgets(path: Path, budgets: object) -> Mapping[str, Budgets]:
    if not isinstance(budgets, Mapping):
        raise InputError(f"{path}: BUDGETS must map patterns of scenario ids to budgets")
    return {
        pattern: build_value(f"{path}: BUDGETS[{pattern!r}]", Budgets.model_validate, obj=values)
        for pattern, values in budgets.items()
    }


@dataclass(frozen=True, slots=True)
class RejudgedEpisode:
    """A stored episode with its new assertions and budgets."""

    episode: Episode
    results: tuple[JudgedAssertion, ...] = ()
    error: str | None = None
    """Why a judge gave no verdict; None: all did."""
    usage: SideUsage | None = None
    """Usage of the judges; None: none was asked."""


def get_transcript_key(episode: Episode) -> TranscriptKey:
    """Return the identity of an episode's transcript."""
    return TranscriptKey(episode.scenario_id, episode.iteration, episode.nodeid or "")


def is_judgeable(episode: Episode) -> bool:
    """Return whether an episode ended with a transcript: it passed or failed."""
    return episode.outcome in {"passed", "failed"} and episode.trajectory is not None


@dataclass(slots=True)
class _Answers:
    """The results of an episode's checks, and the usage of their judges."""

    results: list[JudgedAssertion] = field(default_factory=list)
    usage: SideUsage | None = None
    judges: set[str] = field(default_factory=set)
    """Their models."""


@dataclass(frozen=True, slots=True)
class Rejudging:
    """Judges stored episodes by a plan."""

    plan: JudgePlan
    session: EngineSession
    store: CassetteStore
    cassettes: Path
    concurrency: int = 8

    async def judge_all(self, episodes: Sequence[Episode]) -> tuple[RejudgedEpisode, ...]:
        """Judge episodes concurrently; return them in their order. Raises InputError."""
        gate = asyncio.Semaphore(self.concurrency)
        counts = Counter((one.scenario_id, one.iteration) for one in episodes)

        async def judge(episode: Episode) -> RejudgedEpisode:
            # Two tests with the same scenario id have separate recordings.
            is_alone = counts[episode.scenario_id, episode.iteration] == 1
            async with gate:
                return await self._judge_episode(episode, "" if is_alone else f" {episode.nodeid}")

        # A task for each, because the active episode is a variable of its context.
        return tuple(await asyncio.gather(*(asyncio.create_task(judge(one)) for one in episodes)))

    async def _judge_episode(self, episode: Episode, case: str) -> RejudgedEpisode:
        checks = self.plan.find_checks(episode.scenario_id)
        answers, error = _Answers(), None
        episode_id = "/".join(map(str, episode.key))
        is_on = self.store.mode != "off"
        opened = self.store.episode(
            episode_id, self.cassettes, episode.scenario_id, episode.iteration, case
        )
        with opened if is_on else nullcontext():
            for check in checks:
                try:
                    await self._apply_check(check, episode, episode_id, answers)
                except InputError as problem:
                    raise InputError(f"scenario {episode.scenario_id!r}: {problem}") from problem
                except Exception as problem:  # noqa: BLE001 - any error of a check is its own
                    error = describe_error(problem)
                    break
        return self._build_episode(episode, answers, error)

    async def _apply_check(
        self, check: Check, episode: Episode, episode_id: str, answers: _Answers
    ) -> None:
        with judge_stored_episode(episode, self.session, episode_id) as recorder:
            try:
                found, is_judged = await _await_assertions(check, episode)
            finally:
                used = recorder.snapshot()
                if used.judge is not None:
                    answers.usage = used.judge + answers.usage
        if used.conditions.judge is not None:
            answers.judges.add(used.conditions.judge)
        key = get_transcript_key(episode)
        answers.results += [JudgedAssertion(key, one, is_judged) for one in found]

    def _build_episode(
        self, episode: Episode, answers: _Answers, error: str | None
    ) -> RejudgedEpisode:
        new = [one.assertion for one in answers.results]
        names = {one.name for one in new}
        kept = [one for one in episode.assertions if one.name not in names]
        usage = episode.judge if answers.usage is None else answers.usage + episode.judge
        judged = episode.model_copy(update={"judge": usage})
        built = _change_episode(judged, (*kept, *new), self._merge_budgets(episode), error)
        if answers.judges:
            judges = ", ".join(sorted(answers.judges))
            conditions = Conditions(**{**dict(built.conditions), "judge": judges})
            built = built.model_copy(update={"conditions": conditions})
        results = () if error else tuple(answers.results)
        return RejudgedEpisode(built, results, error, answers.usage)

    def _merge_budgets(self, episode: Episode) -> Any:
        budgets = episode.budgets
        for changed in self.plan.find_budgets(episode.scenario_id):
            budgets = merge_budgets(changed, budgets)
        return budgets


async def _await_assertions(check: Check, episode: Episode) -> tuple[tuple[Assertion, ...], bool]:
    """Return the assertions of a check, and whether a model made them."""
    found = check.assertions(episode)
    if inspect.isawaitable(found):
        awaited: Iterable[Assertion] = await _as_awaitable(found)
        return validate_assertions(check, awaited), True
    return validate_assertions(check, found), False


async def _as_awaitable(found: Awaitable[tuple[Assertion, ...]]) -> tuple[Assertion, ...]:
    return await found


def _change_episode(
    episode: Episode, assertions: Sequence[Assertion], budgets: Any, error: str | None
) -> Episode:
    """Return the episode with other assertions and budgets, and the outcome that follows.

    An episode that failed by its assertions passes if none of them fails any more; one that failed
    for another reason stays failed.
    """
    failed = [one for one in assertions if not one.passed and one.severity == "error"]
    by_assertions = episode.outcome == "failed" and bool(episode.failed_assertions)
    outcome = "passed" if by_assertions else episode.outcome
    reason = None if by_assertions else episode.reason
    if error is not None:
        outcome, reason = "error", error
    if failed:
        reason = describe_failed_checks(failed, outcome, reason)
    changed = {"assertions": assertions, "budgets": budgets, "outcome": outcome, "reason": reason}
    return Episode.model_validate({**dict(episode), **changed})
