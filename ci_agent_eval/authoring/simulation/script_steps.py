"""The steps of a scripted conversation. Pure.

A script is a sequence of steps. A user's step is answered by the agent's step after it; injected
messages and tool results may come between them or before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ci_agent_eval.authoring.simulation.message_files import AttachedBytes, MessageFile, parse_files
from ci_agent_eval.checks import as_check
from ci_agent_eval.contract.fields import Count, NonBlankText, validate_value
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.errors import InputError

InjectedRole = Literal["user", "assistant", "system"]
CheckedPart = Literal["conversation", "turn"]


@dataclass(frozen=True, slots=True)
class UserStep:
    """A message of the user: a text, or the simulated user's next message without one."""

    text: str | None = None
    files: Sequence[MessageFile] = ()

    def __post_init__(self) -> None:
        validate_value("UserStep", "text", str | None, self.text)
        object.__setattr__(self, "files", parse_files("UserStep.files", self.files))
        if self.files and self.text is None:
            raise InputError("UserStep.files: need a text; write one")


@dataclass(frozen=True, slots=True)
class AgentStep:
    """The agent's reply to the messages so far; as the first step, the agent speaks first."""


@dataclass(frozen=True, slots=True)
class ProceedStep:
    """User and agent go on by themselves, for a number of exchanges or until the end."""

    turns: int | None = None

    def __post_init__(self) -> None:
        validate_value("ProceedStep", "turns", Count | None, self.turns)


@dataclass(frozen=True, slots=True)
class MessageStep:
    """A message that is put into the conversation, as if it had been written in it."""

    role: InjectedRole
    text: str

    def __post_init__(self) -> None:
        validate_value("MessageStep", "role", InjectedRole, self.role)
        validate_value("MessageStep", "text", NonBlankText, self.text)


@dataclass(frozen=True, slots=True)
class ToolResultStep:
    """A tool call with its result that is put into the conversation; no tool is called."""

    tool: str
    result: Any
    arguments: Any = None

    def __post_init__(self) -> None:
        validate_value("ToolResultStep", "tool", NonBlankText, self.tool)
        object.__setattr__(self, "result", to_jsonable(self.result))
        object.__setattr__(self, "arguments", to_jsonable(self.arguments))


@dataclass(frozen=True, slots=True)
class CheckStep:
    """An assertion: a Check of the conversation so far or of the last turn, or a function.

    A function takes the conversation; it asserts on its own, or returns whether it holds.
    """

    check: Any
    of: CheckedPart = "conversation"

    def __post_init__(self) -> None:
        if as_check(self.check) is None and not callable(self.check):
            kind = type(self.check).__name__
            raise InputError(
                f"CheckStep.check: must be a Check, or a function of the conversation, not {kind}"
            )
        validate_value("CheckStep", "of", CheckedPart, self.of)


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """The judge of the simulation decides here, and not after each turn."""


Step: TypeAlias = (
    UserStep | AgentStep | ProceedStep | MessageStep | ToolResultStep | CheckStep | JudgeStep
)


def parse_steps(given: object, *, has_judge: bool) -> tuple[Step, ...]:
    """Return the steps of a script as a tuple. Raises InputError, which names the step."""
    if not isinstance(given, list | tuple) or not given:
        raise InputError("run_simulation: steps must be a list with at least one step")
    is_waiting = has_turn = False
    attached = AttachedBytes()
    for number, step in enumerate(given):
        where = f"run_simulation: steps[{number}]"
        if not isinstance(step, Step):
            raise InputError(f"{where}: must be a step such as UserStep, got {step!r}")
        if isinstance(step, UserStep):
            attached.add(where, step.files)
        if isinstance(step, JudgeStep) and not has_judge:
            raise InputError(f"{where}: there is no judge; give one as judge=ConversationJudge(…)")
        if isinstance(step, ProceedStep) and step.turns is None and number < len(given) - 1:
            raise InputError(f"{where}: goes on until the end; make it the last, or give turns")
        if is_waiting and not isinstance(step, AgentStep | MessageStep | ToolResultStep):
            raise InputError(f"{where}: the user's message before it has no answer; add AgentStep")
        if isinstance(step, CheckStep) and step.of == "turn" and not has_turn:
            raise InputError(f"{where}: there is no turn before it; put an AgentStep before it")
        has_turn = has_turn or isinstance(step, AgentStep | ProceedStep)
        is_waiting = isinstance(step, UserStep) or (is_waiting and not isinstance(step, AgentStep))
    if is_waiting:
        raise InputError("run_simulation: the last user's message has no answer; add AgentStep()")
    return tuple(given)


def needs_user(steps: Sequence[Step]) -> bool:
    """Return whether a script has messages that the simulated user writes."""
    return any(
        isinstance(step, ProceedStep) or (isinstance(step, UserStep) and step.text is None)
        for step in steps
    )


def has_files(steps: Sequence[Step]) -> bool:
    """Return whether a message of a script has files."""
    return any(isinstance(step, UserStep) and step.files for step in steps)


def has_injection(steps: Sequence[Step]) -> bool:
    """Return whether a script puts messages or tool results into the conversation."""
    return any(isinstance(step, MessageStep | ToolResultStep) for step in steps)
