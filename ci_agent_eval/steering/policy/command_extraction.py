"""From a tool call to the commands in it: tool names and the forms that arguments take. Pure.

The names and most forms are those of the document of the feature; the others were seen in the
wild: Codex's `local_shell` nests `action.command`, agents send JSON inside of strings, a list of
words, or a tool that is itself called `pytest`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.steering.policy.model import (
    DetectionResult,
    Rules,
    Shell,
    ShellTools,
    ToolCallRequest,
)

SHELL_TOOLS = frozenset(
    {
        "bash", "cmd", "shell", "exec", "exec_command", "execute", "execute_command",
        "run_command", "run_shell_command", "run_terminal_cmd", "powershell", "pwsh",
        "executepwsh", "python", "terminal", "local_shell", "container.exec",
        "bash_tool", "local_shell_call", "run_in_terminal", "run_terminal_command", "shell_command",
    }
)  # fmt: skip
"""The tools whose calls are looked at, in lower case; beside them one called `pytest`.

The document's, and in the last line those of other agents.
"""

MAX_DEPTH = 12
"""How many objects, lists and JSON strings may lie in one another."""

MAX_COMMANDS = 256
"""How many commands of one call are looked at."""

MAX_CHARACTERS = 65_536
"""How long they may be together; the first is always handed over."""

_SHELLS: Mapping[str, Shell] = {
    "powershell": "powershell",
    "pwsh": "powershell",
    "executepwsh": "powershell",
    "cmd": "cmd",
}
_COMMAND_KEYS = ("command", "cmd", "commandline", "command_line", "commands", "script")
_NESTING_KEYS = (
    "input", "body", "data", "action", "arguments", "parameters", "params", "tool_input", "payload",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line, as a shell would read it."""

    text: str
    shell: Shell = "bash"


@dataclass(frozen=True, slots=True)
class Argv:
    """A program and its arguments, which no shell reads."""

    words: tuple[str, ...]


ExtractedCommand = CommandLine | Argv


_NO_TOOLS: ShellTools = {}


def extract_commands(
    call: ToolCallRequest, shell_tools: ShellTools = _NO_TOOLS
) -> tuple[ExtractedCommand, ...]:
    """Return the commands in a call; none where the tool runs no commands. Never raises."""
    return _extract_limited(_as_bash_call(call, shell_tools))[0]


def runs_commands(tool: object, shell_tools: ShellTools) -> bool:
    """Return whether a tool of this name runs commands."""
    return (
        normalize_tool_name(tool) in SHELL_TOOLS
        or _find_argument_names(tool, shell_tools) is not None
    )


def _as_bash_call(call: ToolCallRequest, shell_tools: ShellTools) -> ToolCallRequest:
    """Return a call of a tool that the user named as one of `bash`; any other as it is."""
    keys = _find_argument_names(call.tool, shell_tools)
    if keys is None:
        return call
    arguments: object = call.arguments
    if isinstance(arguments, str):
        arguments = _parse_json(arguments) or arguments
    if not keys or not isinstance(arguments, Mapping):
        return ToolCallRequest("bash", arguments)
    fields = _lower_keys(arguments)
    return ToolCallRequest(
        "bash", [fields[key.lower()] for key in keys if fields.get(key.lower())][:1]
    )


def _find_argument_names(tool: object, shell_tools: ShellTools) -> tuple[str, ...] | None:
    """Return the argument names that the user gave for a tool; None for a tool not named."""
    named = {name.strip().lower(): keys for name, keys in shell_tools.items()}
    whole = str(tool).strip().lower()
    plain = whole.rpartition("__")[2]
    candidates = (whole, plain, plain.rpartition(".")[2])
    return next((named[name] for name in candidates if name in named), None)


def _extract_limited(call: ToolCallRequest) -> tuple[tuple[ExtractedCommand, ...], bool]:
    """Return the commands in a call, and whether there are more than are looked at."""
    tool = normalize_tool_name(call.tool)
    if tool == "pytest":
        return _limit_commands(_read_pytest_call(call.arguments))
    if tool not in SHELL_TOOLS:
        return (), False
    if tool == "python" and (code := _get_python_code(call.arguments)) is not None:
        return (Argv(("python", "-c", code)),), False
    found = _ArgumentReader(_SHELLS.get(tool, "bash")).of(call.arguments, 0)
    return _limit_commands(map(_prepend_python, found) if tool == "python" else found)


def _limit_commands(
    commands: Iterable[ExtractedCommand],
) -> tuple[tuple[ExtractedCommand, ...], bool]:
    kept: list[ExtractedCommand] = []
    left = MAX_CHARACTERS
    for found in commands:
        left -= len(render_command(found))
        if kept and (left < 0 or len(kept) == MAX_COMMANDS):
            return tuple(kept), True
        kept.append(found)
    return tuple(kept), False


def normalize_tool_name(name: object) -> str:
    """Return a tool's name as it is compared: in lower case, without what it belongs to.

    That stands before it with `__`, as of an MCP server, or with a dot: `functions.bash`.
    """
    plain = str(name).strip().lower().rpartition("__")[2]
    last = plain.rpartition(".")[2]
    return last if plain not in SHELL_TOOLS and last in {*SHELL_TOOLS, "pytest"} else plain


def render_command(found: ExtractedCommand) -> str:
    """Return a command as one line of text."""
    return found.text if isinstance(found, CommandLine) else shlex.join(found.words)


def detect_full_suite(call: ToolCallRequest, rules: Rules) -> DetectionResult:
    """Say what a call would do: one command that runs the full suite is enough. Never raises."""
    # The grammar is loaded only for calls that hold commands.
    from ci_agent_eval.steering.policy.detection import detect_in_argv, detect_in_text  # noqa: PLC0415 - as said

    call = _as_bash_call(call, rules.shell_tools)
    commands, more = _extract_limited(call)
    if not commands:
        return DetectionResult(pytest=False, full_suite=False, reason=_explain_no_command(call))
    findings = [
        detect_in_text(found.text, shell=found.shell, rules=rules)
        if isinstance(found, CommandLine)
        else detect_in_argv(found.words, rules=rules)
        for found in commands
    ]
    deciding = max(findings, key=lambda finding: (finding.full_suite, finding.pytest))
    return DetectionResult(
        pytest=deciding.pytest,
        full_suite=deciding.full_suite,
        reason=f"{deciding.reason}; the call holds more than is looked at"
        if more
        else deciding.reason,
        command=deciding.command,
        normal_form="\n".join(finding.normal_form for finding in findings),
    )


def _explain_no_command(call: ToolCallRequest) -> str:
    tool = normalize_tool_name(call.tool)
    if tool in SHELL_TOOLS or tool == "pytest":
        return "no command is in the arguments"
    return "the tool runs no commands"


class _ArgumentReader:
    """Walks through arguments of one tool."""

    def __init__(self, shell: Shell) -> None:
        self.shell: Shell = shell

    def of(self, value: object, depth: int) -> Iterator[ExtractedCommand]:
        """Yield the commands in any value."""
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            yield from self._of_text(value, depth)
        elif isinstance(value, Mapping):
            yield from self._of_object(_lower_keys(value), depth)
        elif isinstance(value, list | tuple):
            yield from self._of_list(value, depth)

    def _of_text(self, text: str, depth: int) -> Iterator[ExtractedCommand]:
        inner = _parse_json(text)
        if inner is not None:
            yield from self.of(inner, depth + 1)
        elif text.strip():
            yield CommandLine(text, self.shell)

    def _of_list(self, items: Sequence[object], depth: int) -> Iterator[ExtractedCommand]:
        words = _convert_words(items)
        if words is None:
            for item in items:
                yield from self.of(item, depth + 1)
        elif len(words) == 1:
            yield from self._of_text(words[0], depth + 1)
        elif words:
            yield Argv(words)

    def _of_object(self, fields: Mapping[str, object], depth: int) -> Iterator[ExtractedCommand]:
        for key in _COMMAND_KEYS:
            if fields.get(key):
                yield from self._of_command(key, fields, depth)
                return
        nested = [fields[key] for key in (*_NESTING_KEYS, "args") if fields.get(key)]
        for value in nested:
            yield from self.of(value, depth + 1)

    def _of_command(
        self, key: str, fields: Mapping[str, object], depth: int
    ) -> Iterator[ExtractedCommand]:
        command, args = fields[key], fields.get("args")
        if key == "commands" and isinstance(command, list | tuple):
            for each in command:
                yield from self.of(each, depth + 1)
            return
        commands = tuple(self.of(command, depth + 1))
        yield from (_append_args(found, args) for found in commands) if args else commands


def _append_args(found: ExtractedCommand, args: object) -> ExtractedCommand:
    """Put the arguments that stand beside a command behind it."""
    words = _convert_words(args) if isinstance(args, list | tuple) else None
    if isinstance(found, Argv):
        return Argv((*found.words, *(words or _split_words(args))))
    if isinstance(args, str):
        return CommandLine(f"{found.text} {args}", found.shell)
    return CommandLine(f"{found.text} {shlex.join(words or ())}", found.shell)


def _get_python_code(arguments: object) -> str | None:
    """Return the source that the tool `python` is to run, where it is given as such."""
    if isinstance(arguments, str):
        arguments = _parse_json(arguments)
    fields = _lower_keys(arguments) if isinstance(arguments, Mapping) else {}
    code = fields.get("code")
    return code if isinstance(code, str) else None


def _prepend_python(found: ExtractedCommand) -> ExtractedCommand:
    """Put the interpreter before what the tool `python` gets only the arguments of."""
    if isinstance(found, Argv):
        return Argv(("python", *found.words)) if found.words[0].startswith("-") else found
    starts = found.text.lstrip().startswith("-")
    return CommandLine(f"python {found.text}", found.shell) if starts else found


def _read_pytest_call(arguments: object) -> Iterable[ExtractedCommand]:
    """Read the call of a tool that is pytest itself: its arguments are pytest's."""
    while isinstance(arguments, str) and (inner := _parse_json(arguments)) is not None:
        arguments = inner
    if not arguments or (isinstance(arguments, Mapping) and not any(arguments.values())):
        return (Argv(("pytest",)),)
    return map(_prepend_pytest, _ArgumentReader("bash").of(arguments, 0))


def _prepend_pytest(found: ExtractedCommand) -> ExtractedCommand:
    if isinstance(found, Argv):
        return found if _names_runner(found.words[0]) else Argv(("pytest", *found.words))
    first = found.text.split(maxsplit=1)[0]
    return found if _names_runner(first) else CommandLine(f"pytest {found.text}", found.shell)


def _names_runner(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"(pytest|py\.test|python[0-9.]*|py)(\.exe)?", name) is not None


def _lower_keys(fields: Mapping[object, object]) -> dict[str, object]:
    return {str(key).lower(): value for key, value in fields.items()}


def _convert_words(items: Sequence[object]) -> tuple[str, ...] | None:
    """Return a list of words as texts; None where something else is in it."""
    if any(not isinstance(item, str | int | float) for item in items):
        return None
    return tuple(map(str, items))


def _split_words(args: object) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args)) if isinstance(args, str) else ()
    except ValueError:
        return tuple(str(args).split())


def _parse_json(text: str) -> object | None:
    """Return the object, list or text that a text holds as JSON; None where it is no JSON."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    parse: Callable[[str], object] = json.loads
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None
