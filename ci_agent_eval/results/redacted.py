"""Taking secrets out of what was loaded, before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.facts import EpisodeFacts, JUnitCase, Loaded, PlainTests

Redact = Callable[[str], str]


def redacted(loaded: Loaded, redact: Redact) -> Loaded:
    """Return the same without secrets; producers other than ours may have written some."""
    return replace(
        loaded,
        episodes=tuple(_facts(facts, redact) for facts in loaded.episodes),
        tests=_tests(loaded.tests, redact),
        findings=tuple(
            replace(f, where=redact(f.where), message=redact(f.message)) for f in loaded.findings
        ),
    )


def redacted_json(value: Any, redact: Redact) -> Any:
    """Return a JSON value without secrets in its texts; keys of objects are texts too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted_json(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): redacted_json(item, redact) for key, item in value.items()}
    return value


def _facts(facts: EpisodeFacts, redact: Redact) -> EpisodeFacts:
    return replace(
        facts,
        scenario_id=redact(facts.scenario_id),
        nodeid=_text(facts.nodeid, redact),
        reason=_text(facts.reason, redact),
        failed_assertions=_assertions(facts.failed_assertions, redact),
        warnings=_assertions(facts.warnings, redact),
    )


def _assertions(assertions: tuple[Assertion, ...], redact: Redact) -> tuple[Assertion, ...]:
    return tuple(
        a.model_copy(update={"name": redact(a.name), "reason": _text(a.reason, redact)})
        for a in assertions
    )


def _tests(tests: PlainTests, redact: Redact) -> PlainTests:
    return replace(
        tests,
        failing=tuple(_case(case, redact) for case in tests.failing),
        flaky=tuple(redact(title) for title in tests.flaky),
    )


def _case(case: JUnitCase, redact: Redact) -> JUnitCase:
    return case._replace(
        name=redact(case.name),
        message=_text(case.message, redact),
        detail=_text(case.detail, redact),
    )


def _text(text: str | None, redact: Redact) -> str | None:
    return None if text is None else redact(text)
