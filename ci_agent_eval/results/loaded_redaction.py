"""Redact secrets in loaded results, before anything else uses them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    JUnitCase,
    LoadedResults,
    PlainTests,
    TrajectoryStep,
)
from ci_agent_eval.contract.episode import Assertion, Conditions
from ci_agent_eval.contract.findings import FindingData, StoppedRun
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.contract.results import Session
from ci_agent_eval.redaction import make_distinct_names, redact_value, remove_secret_pairs

Redact = Callable[[str], str]
"""Redacts secrets in a text."""
EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""

_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class RedactedNames:
    """Redacted names of scenarios and tests; they stay distinct."""

    scenarios: Mapping[str, str]
    nodeids: Mapping[str, str]

    @classmethod
    def build(cls, keys: Iterable[EpisodeKey], redact: Redact) -> RedactedNames:
        """Redact the names in the keys of episodes."""
        keys = list(keys)
        return cls(
            make_distinct_names((key[0] for key in keys), redact),
            make_distinct_names((key[1] for key in keys), redact),
        )

    def rename_key(self, key: EpisodeKey) -> EpisodeKey:
        """Return the key with redacted names."""
        return self.scenarios[key[0]], self.nodeids[key[1]], key[2], key[3]


def redact_results(loaded: LoadedResults, redact: Redact) -> LoadedResults:
    """Redact secrets in loaded results, which other producers may have written.

    Episodes that differ only in a secret are numbered.
    """
    names = RedactedNames.build((record.key for record in loaded.episodes), redact)
    # Files, agents and models are the same in thousands of episodes.
    redact = functools.lru_cache(_CACHE_SIZE)(_redact_secret_pairs(redact))

    def redact_location(text: str) -> str:
        return names.nodeids.get(text) or redact(text)

    def redact_scenario(name: str) -> str:
        return names.scenarios.get(name) or redact(name)

    episodes = (_redact_episode(record, names, redact) for record in loaded.episodes)
    return replace(
        loaded,
        episodes=tuple(sorted(episodes, key=attrgetter("key"))),
        tests=_redact_tests(loaded.tests, redact_location, redact),
        sessions=tuple(_redact_session(session, names, redact) for session in loaded.sessions),
        sources=tuple(replace(source, path=redact(source.path)) for source in loaded.sources),
        findings=tuple(
            replace(
                f,
                where=redact_location(f.where),
                message=_redact_message(f.message, redact_scenario, redact),
            )
            for f in loaded.findings
        ),
        suites=tuple(sorted(map(redact, loaded.suites))),
    )


def _redact_message(
    message: str | FindingData, redact_scenario: Redact, redact: Redact
) -> str | FindingData:
    if isinstance(message, str):
        return redact(message)
    if isinstance(message, StoppedRun):
        return replace(message, scenarios=tuple(map(redact_scenario, message.scenarios)))
    return message


def _redact_secret_pairs(redact: Redact) -> Redact:
    return lambda text: remove_secret_pairs(redact(text))


def redact_json(value: Any, redact: Redact) -> Any:
    """Redact secrets in the strings and object keys of a JSON value."""
    if isinstance(value, str):
        return remove_secret_pairs(redact(value))
    if isinstance(value, list):
        return [redact_json(item, redact) for item in value]
    if isinstance(value, dict):
        names = make_distinct_names(value, redact)
        return {
            names[key]: redact_json(redact_value(key, item), redact) for key, item in value.items()
        }
    return value


def _redact_episode(record: EpisodeRecord, names: RedactedNames, redact: Redact) -> EpisodeRecord:
    return replace(
        record,
        scenario_id=names.scenarios[record.scenario_id],
        nodeid=None if record.nodeid is None else names.nodeids[record.nodeid],
        file=_redact_text(record.file, redact),
        case=_redact_text(record.case, redact),
        reason=_redact_text(record.reason, redact),
        failed_assertions=_redact_assertions(record.failed_assertions, redact),
        warnings=_redact_assertions(record.warnings, redact),
        violations=tuple(_redact_violation(violation, redact) for violation in record.violations),
        agent=_redact_text(record.agent, redact),
        model=_redact_text(record.model, redact),
        was=tuple(redact(name) for name in record.was),
        conditions=_redact_conditions(record.conditions, redact),
        steps=tuple(
            TrajectoryStep(s.turn, redact(s.tool), redact(s.arguments)) for s in record.steps
        ),
        checks=tuple(check._replace(name=redact(check.name)) for check in record.checks),
        hard_limits=tuple((redact(name), limit) for name, limit in record.hard_limits),
    )


def _redact_conditions(conditions: Conditions, redact: Redact) -> Conditions:
    tools = conditions.tools
    update = {
        "tools": None if tools is None else tuple(redact(tool) for tool in tools),
        "prices": _redact_text(conditions.prices, redact),
        "judge": _redact_text(conditions.judge, redact),
        "instructions": tuple(
            one.model_copy(
                update={
                    "name": _redact_text(one.name, redact),
                    "text": redact(one.text),
                    "recorded": _redact_text(one.recorded, redact),
                }
            )
            for one in conditions.instructions
        ),
    }
    # Checking is faster than copying thousands of unchanged conditions.
    is_clean = all(getattr(conditions, name) == value for name, value in update.items())
    return conditions if is_clean else conditions.model_copy(update=update)


def _redact_assertions(assertions: tuple[Assertion, ...], redact: Redact) -> tuple[Assertion, ...]:
    return tuple(
        a.model_copy(
            update={
                "name": redact(a.name),
                "reason": _redact_text(a.reason, redact),
                "file": _redact_text(a.file, redact),
            }
        )
        for a in assertions
    )


def _redact_violation(violation: BudgetViolation, redact: Redact) -> BudgetViolation:
    return replace(
        violation, budget=redact(violation.budget), unit=_redact_text(violation.unit, redact)
    )


def _redact_tests(tests: PlainTests, redact_location: Redact, redact: Redact) -> PlainTests:
    return replace(
        tests,
        failing=tuple(_redact_case(case, redact_location, redact) for case in tests.failing),
        flaky=tuple(redact(title) for title in tests.flaky),
    )


def _redact_case(case: JUnitCase, redact_location: Redact, redact: Redact) -> JUnitCase:
    return case._replace(
        classname=redact(case.classname),
        name=redact(case.name),
        message=_redact_text(case.message, redact),
        detail=_redact_text(case.detail, redact),
        file=_redact_text(case.file, redact),
        nodeid=_redact_text(case.nodeid, redact_location),
    )


def _redact_session(session: Session, names: RedactedNames, redact: Redact) -> Session:
    def redact_scenario(name: str) -> str:
        return names.scenarios.get(name) or redact(name)

    return session.model_copy(
        update={
            "suite": redact(session.suite),
            "stopped": _redact_text(session.stopped, redact),
            "commit": _redact_text(session.commit, redact),
            "run": _redact_text(session.run, redact),
            "unafforded": tuple(map(redact_scenario, session.unafforded)),
            "left_out": tuple(map(redact_scenario, session.left_out)),
            "adaptive_stops": tuple(
                stop.model_copy(
                    update={
                        "scenario_id": redact_scenario(stop.scenario_id),
                        "agent": _redact_text(stop.agent, redact),
                    }
                )
                for stop in session.adaptive_stops
            ),
            "collection_errors": tuple(
                error.model_copy(
                    update={"nodeid": redact(error.nodeid), "message": redact(error.message)}
                )
                for error in session.collection_errors
            ),
        }
    )


def _redact_text(text: str | None, redact: Redact) -> str | None:
    return None if text is None else redact(text)
