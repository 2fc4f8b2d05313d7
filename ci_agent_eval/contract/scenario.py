"""An entry of a scenario file (YAML, JSON or CSV): user, goal and checks.

Types are strict: a number is never read as a text, nor a text as a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StrictInt, StrictStr
from pydantic import model_validator as validator

from ci_agent_eval.contract.affected import is_file_pattern
from ci_agent_eval.contract.base import KnownKeysModel, Rate, describe_unknown_key
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.contract.faults import Fault, check_declared_fault
from ci_agent_eval.contract.iteration_range import parse_iterations
from ci_agent_eval.contract.stops import AllowedStops


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


def _parse_script_entry(entry: Any) -> Any:
    """Accept a message, or rules that map a pattern of the agent's last reply to a message."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping) or not entry:
        raise ValueError("must be a text, or rules: a pattern in the last reply, and a text")
    for pattern, message in entry.items():
        _check_pattern(pattern)
        if not isinstance(message, str):
            raise ValueError(f"the message for {pattern!r} must be a text")  # noqa: TRY004 - pydantic turns ValueError into its own error
    return dict(entry)


STEP_KINDS = ("user", "agent", "proceed", "message", "tool_result", "check", "expect", "judge")
"""Steps of a script by name; `expect` are checks of the last turn, `check` of all so far."""


def _parse_step(step: Any) -> Any:
    """Return a step as its kind with its value; a bare text is a kind without a value."""
    given = {step: None} if isinstance(step, str) else step
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"must be one step: {', '.join(STEP_KINDS)}")
    (kind,) = given
    if kind not in STEP_KINDS:
        raise ValueError(describe_unknown_key(str(kind), STEP_KINDS))
    return dict(given)


def _parse_checks(checks: Any) -> Any:
    """Return checks as a list; a single one may stand alone."""
    return [checks] if isinstance(checks, str | Mapping) else checks


def _parse_goal(goal: Any) -> Any:
    return {"text": goal} if isinstance(goal, str) else goal


def _refuse_empty(value: Any) -> Any:
    if not value:
        raise ValueError("is empty, and so checks nothing; name at least one, or take the key away")
    return value


def _refuse_empty_checks(checks: ScenarioChecks) -> ScenarioChecks:
    if not any(value or value == 0 for _, value in checks):
        raise ValueError("checks nothing; write a check, or take the key away")
    return checks


Text = Annotated[StrictStr, Field(min_length=1)]
Pattern = Annotated[StrictStr, Field(min_length=1), AfterValidator(_check_pattern)]
Number = Annotated[StrictInt, Field(ge=1, le=2**31)]
Limit = Annotated[StrictInt, Field(ge=0, le=2**31)]
Name = Annotated[StrictStr, Field(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,198}\S)?$")]
"""An id: printable, up to 200 characters."""


def _check_iterations(given: Any) -> Any:
    if given is not None:
        parse_iterations(given)
    return given


Iterations = Annotated[Number | StrictStr | None, BeforeValidator(_check_iterations)]

Texts = Annotated[tuple[Text, ...], AfterValidator(_refuse_empty)]
Patterns = Annotated[tuple[Pattern, ...], AfterValidator(_refuse_empty)]
Limits = Annotated[dict[str, Limit], AfterValidator(_refuse_empty)]
Arguments = Annotated[dict[str, JsonValue], AfterValidator(_refuse_empty)]


class ScenarioGoal(KnownKeysModel):
    """The user's goal, with optional conditions for reaching it."""

    text: Text | None = Field(default=None, description="prompt of the model that plays the user")
    reply_matches: Pattern | None = Field(
        default=None, description="regular expression that one of the agent's replies must match"
    )
    tool_called: Text | None = Field(default=None, description="tool that the agent must call")

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions that are set, by name."""
        conditions = {"reply_matches": self.reply_matches, "tool_called": self.tool_called}
        return {name: value for name, value in conditions.items() if value is not None}


class ScenarioChecks(KnownKeysModel):
    """Checks of the whole conversation."""

    required_tools: Texts = Field(default=(), description="tools that must be called")
    forbidden_tools: Texts = Field(default=(), description="tools that must not be called")
    ordered_tools: Texts = Field(default=(), description="tools called in this order")
    required_text: Texts = Field(default=(), description="texts that a reply must contain")
    forbidden_text: Texts = Field(default=(), description="texts that no reply may contain")
    required_patterns: Patterns = Field(
        default=(), description="regular expressions that a reply matches"
    )
    forbidden_patterns: Patterns = Field(
        default=(), description="regular expressions that no reply matches"
    )
    tool_limits: Limits = Field(default_factory=dict, description="maximum calls, by tool")
    arguments: Annotated[dict[str, Arguments], AfterValidator(_refuse_empty)] = Field(
        default_factory=dict, description="arguments that every call of a tool has, by tool"
    )
    max_tool_calls: Limit | None = Field(default=None, description="maximum calls of all tools")


NamedCheck = Annotated[Any, Field(description="a check's name, with its arguments")]
NamedChecks = Annotated[
    tuple[NamedCheck, ...], BeforeValidator(_parse_checks), AfterValidator(_refuse_empty)
]


class ScenarioJudge(KnownKeysModel):
    """Checks that end the conversation with a verdict."""

    success: NamedChecks = Field(default=(), description="it passes as soon as all of them pass")
    must_hold: NamedChecks = Field(default=(), description="it fails as soon as one of them fails")


def _check_file_pattern(given: str) -> str:
    if not is_file_pattern(given):
        raise ValueError("must be a file or pattern below the repository's root, such as src/*")
    return given


class ScenarioEntry(KnownKeysModel):
    """One scenario of a file."""

    id: Name = Field(description="scenario id; part of the test's node id")
    persona: Text = "a user"
    private_facts: dict[Text, Text] = Field(
        default_factory=dict, description="facts that only the user knows, by name"
    )
    goal: Annotated[ScenarioGoal, BeforeValidator(_parse_goal)] = Field(
        default_factory=ScenarioGoal
    )
    initial_message: Text | None = None
    fixed_responses: tuple[Text, ...] = Field(
        default=(), description="messages, repeated in a cycle"
    )
    script: tuple[Annotated[Any, BeforeValidator(_parse_script_entry)], ...] | None = Field(
        default=None, description="messages sent once each: texts, or rules of pattern and text"
    )
    steps: tuple[Annotated[Any, BeforeValidator(_parse_step)], ...] | None = Field(
        default=None, description="script of the conversation"
    )
    judge: ScenarioJudge | None = Field(default=None, description="judges after each turn")
    expect: NamedChecks = Field(default=(), description="checks of the whole conversation, by name")
    model: Text | None = Field(default=None, description="model that plays the user")
    max_history_messages: Number | None = None
    stop_token: Text | None = None
    max_turns: Number | None = Field(default=None, description="maximum exchanges")
    budgets: Budgets = Field(default_factory=Budgets)
    checks: Annotated[ScenarioChecks, AfterValidator(_refuse_empty_checks)] = Field(
        default_factory=ScenarioChecks
    )
    gate: Gating | None = None
    min_pass_rate: Rate | None = Field(default=None, strict=True)
    min_passes: Number | None = None
    iterations: Iterations = Field(
        default=None, description="a number, or `auto` with an optional range such as `auto:5-40`"
    )
    allowed_stops: AllowedStops = Field(
        default=(), description="ends without an answer that do not fail the episode"
    )
    faults: tuple[Annotated[Fault, AfterValidator(check_declared_fault)], ...] = Field(
        default=(), description="faults on purpose"
    )
    depends_on: tuple[Annotated[Text, AfterValidator(_check_file_pattern)], ...] = Field(
        default=(), description="files and patterns that can change the result"
    )
    tags: tuple[Text, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def has_user(self) -> bool:
        """Whether a simulated user writes messages."""
        return bool(self.fixed_responses) or self.script is not None or self.model is not None

    @validator(mode="after")
    def _check_user_and_passes(self) -> Self:
        if self.fixed_responses and self.script is not None:
            raise ValueError("give fixed_responses or a script, not both")
        if self.steps is not None and self.initial_message is not None:
            raise ValueError("give steps or initial_message, not both")
        if not self.has_user and self.steps is None:
            raise ValueError("its user has nothing to say; give fixed_responses, script or model")
        if self.min_pass_rate is not None and self.min_passes is not None:
            raise ValueError("give min_pass_rate or min_passes, not both")
        if isinstance(self.iterations, str) and self.min_passes is not None:
            raise ValueError("min_passes needs a fixed number of iterations; give min_pass_rate")
        if isinstance(self.iterations, int) and (self.min_passes or 0) > self.iterations:
            raise ValueError(
                f"min_passes {self.min_passes} of {self.iterations} iterations can never be reached"
            )
        return self
