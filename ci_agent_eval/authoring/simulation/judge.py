"""The judge of a simulation: checks that can end the conversation with a verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed
from ci_agent_eval.checks import Check, as_check
from ci_agent_eval.checks.conversion import validate_assertions
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.errors import InputError


class SimulationVerdict(NamedTuple):
    """A judge's verdict on a conversation."""

    passed: bool
    reason: str


class JudgeDecision(NamedTuple):
    """The verdict on a conversation if it ends now, and the assertions that it is based on."""

    verdict: SimulationVerdict
    assertions: tuple[Assertion, ...]
    ends_conversation: bool


@dataclass(frozen=True, slots=True)
class ConversationJudge:
    """Judges the conversation after each turn, and ends it with a verdict.

    It fails as soon as a check of `must_hold` fails, and passes as soon as all checks of
    `success` pass. At the end of the conversation it fails without `success`. Checks are
    Checks, rubrics of models, or evaluators of pydantic-evals. Raises InputError without any.
    """

    success: Check | Sequence[Any] = ()
    must_hold: Check | Sequence[Any] = ()

    def __post_init__(self) -> None:
        for name in ("success", "must_hold"):
            object.__setattr__(self, name, _parse_checks(name, getattr(self, name)))
        if not self.success and not self.must_hold:
            raise InputError("ConversationJudge: give it checks as success or must_hold")

    async def decide(self, episode: Episode) -> JudgeDecision:
        """Return the decision on an episode so far. Raises JudgeError."""
        held = await apply_checks(self.must_hold, episode)
        if failed := [assertion for assertion in held if _is_failed(assertion)]:
            return _build_decision(failed, passed=False, ends_conversation=True)
        reached = await apply_checks(self.success, episode)
        # A failed warning fails nothing, but it is no success to stop for.
        has_success = bool(reached) and all(assertion.passed for assertion in reached)
        is_passed = not any(map(_is_failed, reached))
        return _build_decision([*held, *reached], passed=is_passed, ends_conversation=has_success)


async def apply_checks(checks: Any, episode: Episode) -> list[Assertion]:
    """Apply checks to an episode. Raises InputError for a check that finds nothing."""
    found: list[Assertion] = []
    for check in checks:
        assertions = await await_if_needed(check.assertions(episode))
        found += validate_assertions(check, assertions)
    return found


def _parse_checks(name: str, given: object) -> tuple[Check, ...]:
    checks = given if isinstance(given, list | tuple) else (given,)
    found = tuple(map(as_check, checks))
    for check, value in zip(found, checks, strict=True):
        if check is None:
            raise InputError(f"ConversationJudge.{name}: must be Checks, got {value!r}")
    return tuple(check for check in found if check is not None)


def _is_failed(assertion: Assertion) -> bool:
    return not assertion.passed and assertion.severity == "error"


def _build_decision(
    found: Sequence[Assertion], *, passed: bool, ends_conversation: bool
) -> JudgeDecision:
    named = [each for each in found if passed or _is_failed(each)]
    reasons = [f"{each.name}: {each.reason}" if each.reason else each.name for each in named]
    verdict = SimulationVerdict(passed, "; ".join(reasons))
    return JudgeDecision(verdict, tuple(found), ends_conversation)
