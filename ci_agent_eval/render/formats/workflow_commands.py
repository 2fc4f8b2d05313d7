"""Workflow commands: annotations for runs that may not create a check run.

The runner undoes the escaping (ActionCommand.cs), and keeps 10 annotations of a type for a
step and 4,096 characters of a message (ExecutionContext.cs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from ci_agent_eval.render.escape import cut_bytes
from ci_agent_eval.render.formats.annotations import Annotation, Level
from ci_agent_eval.render.numbers import count_noun

PER_TYPE = 10
MESSAGE_BYTES = 4_096

_COMMANDS: dict[Level, str] = {"failure": "error", "warning": "warning", "notice": "notice"}


def render_commands(annotations: Sequence[Annotation]) -> str:
    """Return one command a line: the first of each type, then a notice that counts the rest."""
    shown = [annotation for level in _COMMANDS for annotation in _take_first(annotations, level)]
    lines = [_format_command(annotation) for annotation in shown]
    if rest := len(annotations) - len(shown):
        left_out = f"{count_noun(rest, 'annotation')} more than the runner shows; see the report"
        lines.append(format_workflow_command("notice", left_out))
    return "".join(f"{line}\n" for line in lines)


def format_workflow_command(kind: Literal["error", "warning", "notice"], sentence: str) -> str:
    """Return the command that shows one sentence of our own on the run's page."""
    return f"::{kind} title=agent-eval::{escape_data(cut_bytes(sentence, MESSAGE_BYTES))}"


def escape_data(text: str) -> str:
    """Escape the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a command's property."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _take_first(annotations: Sequence[Annotation], level: Level) -> Iterator[Annotation]:
    # The notice that counts the rest is one of the ten notices.
    most = PER_TYPE - 1 if level == "notice" else PER_TYPE
    return islice((a for a in annotations if a.level == level), most)


def _format_command(annotation: Annotation) -> str:
    properties = {
        "file": annotation.path,
        "line": str(annotation.start_line),
        "endLine": str(annotation.end_line),
        "title": annotation.title,
    }
    written = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    message = escape_data(cut_bytes(annotation.message, MESSAGE_BYTES))
    return f"::{_COMMANDS[annotation.level]} {written}::{message}"
