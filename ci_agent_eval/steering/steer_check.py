"""Output of `agent-eval steer check`, as an explanation or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.steering.policy.command_extraction import detect_full_suite
from ci_agent_eval.steering.policy.model import DetectionResult, Rules, ToolCallRequest


def render_detection(result: DetectionResult, advice: str | None = None) -> str:
    """Return a readable explanation of a result, with the command to run instead."""
    if result.full_suite:
        effect = "full suite: it would be held back once in each session"
    else:
        effect = (
            "targeted: it goes through" if result.pytest else "no run of pytest: it goes through"
        )
    lines = [effect, f"reason:  {result.reason}"]
    if result.command is not None:
        lines.append(f"command: {result.command}")
    if advice is not None:
        lines.append(f"instead: {advice}")
    # A command may contain control characters, which must not reach the terminal.
    return "".join(f"{_escape_unprintable(line)}\n" for line in lines)


def answer_lines(lines: Iterable[bytes], rules: Rules) -> Iterator[str]:
    """Yield a JSON answer for each line of JSON; an invalid line gets an `error`."""
    for number, line in enumerate(lines, start=1):
        try:
            answer = build_json_answer(detect_full_suite(_parse_call(line), rules))
        except (ValueError, RecursionError) as error:
            answer = {"error": f"line {number}: {_describe_error(error)}"}
        yield json.dumps(answer) + "\n"


def _describe_error(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON ({error.msg}, column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 (byte {error.start})"
    return one_line(str(error))


def build_json_answer(result: DetectionResult) -> dict[str, object]:
    """Return the JSON fields of a result."""
    return {
        "pytest": result.pytest,
        "full_suite": result.full_suite,
        "command": result.command,
        "reason": result.reason,
    }


def _parse_call(line: bytes) -> ToolCallRequest:
    document = json.loads(line)
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - handled like other invalid input
    tool = document.get("tool")
    if not isinstance(tool, str) or "arguments" not in document:
        raise ValueError('must have "tool", a text, and "arguments"')
    return ToolCallRequest(tool, document["arguments"])


def _escape_unprintable(text: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
