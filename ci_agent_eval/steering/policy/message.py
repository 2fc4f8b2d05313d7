"""The message of a held full run, with the command to run instead. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent_eval.steering.policy.model import DetectionResult
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, RESEND

PLACEHOLDER = "{command}"
"""Stands for the command in a message of the user's own."""

EXAMPLE_COMMAND = "pytest path/to/test_file.py"
"""Replaces the placeholder for a run of pytest if no command is known."""


_DEFAULT_WITH_COMMAND = DEFAULT_MESSAGE.replace(
    RESEND, f" To run the tests of the changed files, use `{PLACEHOLDER}`.{RESEND}"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """What an agent may do instead of a full run."""

    command: str | None = None
    """A shell command that runs the tests of the changed files."""
    passed: str | None = None
    """A sentence that says that the same tests passed on the same files."""


NO_ADVICE = Advice()

Adviser = Callable[[DetectionResult], Advice]
"""Returns the advice for a full run; must not raise."""


def give_no_advice(run: DetectionResult) -> Advice:  # noqa: ARG001 - an Adviser
    """Return empty advice: nobody knows where the command would run."""
    return NO_ADVICE


def compose_message(
    message: str, advice: Advice, *, has_session: bool, example: str = EXAMPLE_COMMAND
) -> str:
    """Return the message of a held full run.

    Without a session a repeated call is held again, so the message does not offer it. `example`
    replaces the placeholder if no command is known.
    """
    if advice.command and message == DEFAULT_MESSAGE:
        message = _DEFAULT_WITH_COMMAND
    if not has_session:
        message = message.replace(RESEND, "")
    message = message.replace(PLACEHOLDER, advice.command or example)
    return f"{advice.passed} {message}" if advice.passed else message
