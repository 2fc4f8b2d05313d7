"""The message of a held full run, with the command to run instead. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ci_agent_eval.steering.policy.model import DetectionResult
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, RESEND

PLACEHOLDER = "{command}"
"""Stands for the command in a message of the user's own."""

EXAMPLE_COMMAND = "pytest path/to/test_file.py"
"""Replaces the placeholder for a run of pytest if no command is known."""


_DEFAULT_WITH_COMMAND = DEFAULT_MESSAGE.replace(
    RESEND, f" To run the tests of the changed files, use `{PLACEHOLDER}`.{RESEND}"
)


Adviser = Callable[[DetectionResult], str | None]
"""Returns a command that runs the tests of the changed files; None if unknown. Must not raise."""


def give_no_advice(run: DetectionResult) -> None:
    """Return None: nobody knows where the command would run."""


def compose_message(
    message: str, command: str | None, *, has_session: bool, example: str = EXAMPLE_COMMAND
) -> str:
    """Return the message of a held full run; `command` is the advice.

    Without a session a repeated call is held again, so the message does not offer it. `example`
    replaces the placeholder if no command is known.
    """
    if command and message == DEFAULT_MESSAGE:
        message = _DEFAULT_WITH_COMMAND
    if not has_session:
        message = message.replace(RESEND, "")
    return message.replace(PLACEHOLDER, command or example)
