"""Extraction of commands from tool calls: tool names and formats of arguments. Pure.

The names and most formats come from the feature's specification, the others from real agents:
Codex's `local_shell` nests `action.command`, agents send JSON inside strings, a list of words,
or a tool called `pytest`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.steering.policy.model import (
    DetectionResult,
    Rules,
    Shell,
    ShellTools,
    ToolCallRequest,
)
from ci_agent_eval.steering.policy.shell_inference import infer_shell

SHELL_TOOLS = frozenset(
    {
        "bash", "cmd", "shell", "exec", "exec_command", "execute", "execute_command",
        "run_command", "run_shell_command", "run_terminal_cmd", "powershell", "pwsh",
        "executepwsh", "python", "terminal", "local_shell", "container.exec",
        "bash_tool", "local_shell_call", "run_in_terminal", "run_terminal_command", "shell_command",
        "execute_bash", "executebash", "execute_shell_command", "launch-process", "run_commands",
        "run_shell", "shell_exec", "start_process", "execute_terminal_command", "write_stdin",
        "mcp__*__run",
    }
)  # fmt: skip
"""The tools that run commands, in lower case; those that run only pytest are handled separately.

From the feature's specification; the last lines list tools of other agents. `mcp__*__run` is
any MCP server's tool `run`.
"""

PYTEST_TOOLS = frozenset({"pytest", "run_pytest"})
"""The tools that run pytest with the given arguments, in lower case."""

MAX_COMMANDS = 256
"""Maximum number of commands read from one call."""

MAX_DEPTH = 12
"""Maximum nesting depth of objects, lists and JSON strings in a call's arguments."""

MAX_CHARACTERS = 65_536
"""Maximum total length of a call's commands; the first one is always returned."""

_SHELLS: Mapping[str, Shell] = {
    "powershell": "powershell",
    "pwsh": "powershell",
    "executepwsh": "powershell",
    "cmd": "cmd",
    "bash": "bash",
    "bash_tool": "bash",
    "execute_bash": "bash",
    "executebash": "bash",
    "sh": "bash",
}
"""Shells by tools and languages of code; that of other tools is inferred from the command."""
_COMMAND_KEYS = (
    "command", "cmd", "commandline", "command_line", "cmdline", "commands", "script", "code",
    "program", "executable", "chars",
)  # fmt: skip
_PROGRAM_KEYS = ("program", "executable")
_FOLDER_KEYS = ("cwd", "workdir", "working_directory", "workingdirectory", "directory", "dir_path")
_PYTEST_TARGET_KEYS = ("path", "test_path", "target")
_PYTEST_NEUTRAL_KEYS = frozenset({"verbose", "quiet", "timeout", *_FOLDER_KEYS})
"""Arguments of pytest's tools that select no tests."""
_NESTING_KEYS = (
    "input", "body", "data", "action", "arguments", "parameters", "params", "tool_input", "payload",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line in a shell's syntax."""

    text: str
    shell: Shell = "bash"


@dataclass(frozen=True, slots=True)
class Argv:
    """A program and its arguments, not parsed by a shell."""

    words: tuple[str, ...]


ExtractedCommand = CommandLine | Argv


_NO_TOOLS: ShellTools = {}


def extract_commands(
    call: ToolCallRequest, shell_tools: ShellTools = _NO_TOOLS
) -> tuple[ExtractedCommand, ...]:
    """Return the commands in a call; empty if its tool runs no commands. Never raises."""
    return _extract_limited(_as_bash_call(call, shell_tools))[0]


def runs_commands(tool: object, shell_tools: ShellTools) -> bool:
    """Return whether a tool of this name runs commands."""
    if _identify_shell_tool(tool) in SHELL_TOOLS:
        return True
    return _find_argument_names(tool, shell_tools) is not None


def _as_bash_call(call: ToolCallRequest, shell_tools: ShellTools) -> ToolCallRequest:
    """Convert a call of a tool named in the settings to a call of `bash`."""
    argument_names = _find_argument_names(call.tool, shell_tools)
    if argument_names is None:
        return call
    arguments: object = call.arguments
    if isinstance(arguments, str):
        arguments = _parse_json_text(arguments) or arguments
    if not argument_names or not isinstance(arguments, Mapping):
        return ToolCallRequest("bash", arguments)
    fields = _lower_keys(arguments)
    values = [fields[key.lower()] for key in argument_names if fields.get(key.lower())]
    return ToolCallRequest("bash", values[:1])


def _find_argument_names(tool: object, shell_tools: ShellTools) -> tuple[str, ...] | None:
    """Return a tool's argument names from the settings; None if they do not name the tool."""
    names_by_tool = {name.strip().lower(): keys for name, keys in shell_tools.items()}
    full_name = str(tool).strip().lower()
    short_name = full_name.rpartition("__")[2]
    candidates = (full_name, short_name, short_name.rpartition(".")[2])
    return next((names_by_tool[name] for name in candidates if name in names_by_tool), None)


def _extract_limited(call: ToolCallRequest) -> tuple[tuple[ExtractedCommand, ...], bool]:
    """Return the commands in a call, and whether the limits cut them off."""
    tool = _identify_shell_tool(call.tool)
    if tool in PYTEST_TOOLS:
        return _limit_commands(_read_pytest_call(call.arguments))
    if tool not in SHELL_TOOLS:
        return (), False
    if tool == "python" and (code := _get_python_code(call.arguments)) is not None:
        return (Argv(("python", "-c", code)),), False
    commands = _ArgumentReader(_SHELLS.get(tool)).read(call.arguments, 0)
    return _limit_commands(map(_prepend_python, commands) if tool == "python" else commands)


def _limit_commands(
    commands: Iterable[ExtractedCommand],
) -> tuple[tuple[ExtractedCommand, ...], bool]:
    kept: list[ExtractedCommand] = []
    remaining = MAX_CHARACTERS
    for command in commands:
        remaining -= len(render_command(command))
        if kept and (remaining < 0 or len(kept) == MAX_COMMANDS):
            return tuple(kept), True
        kept.append(command)
    return tuple(kept), False


def normalize_tool_name(name: object) -> str:
    """Return a tool's name in lower case and without its namespace.

    The namespace ends with `__`, as with MCP servers, or with a dot: `functions.bash`.
    """
    short_name = str(name).strip().lower().rpartition("__")[2]
    last_part = short_name.rpartition(".")[2]
    if short_name not in SHELL_TOOLS and last_part in SHELL_TOOLS | PYTEST_TOOLS:
        return last_part
    return short_name


def _identify_shell_tool(name: object) -> str:
    """Return the entry of `SHELL_TOOLS` for a tool, or its name without its namespace."""
    is_mcp_run = re.fullmatch(r"mcp__.+__run", str(name).strip().lower())
    return "mcp__*__run" if is_mcp_run else normalize_tool_name(name)


def render_command(command: ExtractedCommand) -> str:
    """Return a command as one line of text."""
    return command.text if isinstance(command, CommandLine) else shlex.join(command.words)


def detect_full_suite(call: ToolCallRequest, rules: Rules) -> DetectionResult:
    """Detect whether any command of a call would run the full suite. Never raises."""
    # Loads the grammar only for calls with commands.
    from ci_agent_eval.steering.policy.detection import detect_in_argv, detect_in_text  # noqa: PLC0415 - as said

    call = _as_bash_call(call, rules.shell_tools)
    commands, is_truncated = _extract_limited(call)
    if not commands:
        return DetectionResult(pytest=False, full_suite=False, reason=_explain_no_command(call))
    folder = _find_folder(call.arguments)
    results = [
        detect_in_text(command.text, shell=command.shell, rules=rules, folder=folder)
        if isinstance(command, CommandLine)
        else detect_in_argv(command.words, rules=rules, folder=folder)
        for command in commands
    ]
    deciding = max(results, key=lambda result: (result.full_suite, result.pytest))
    reason = deciding.reason
    if is_truncated:
        reason += "; the call holds more than is looked at"
    intents = dict.fromkeys(intent for result in results for intent in result.intents)
    return replace(deciding, reason=reason, intents=tuple(intents))


def _explain_no_command(call: ToolCallRequest) -> str:
    if _identify_shell_tool(call.tool) in SHELL_TOOLS | PYTEST_TOOLS:
        return "no command is in the arguments"
    return "the tool runs no commands"


def _find_folder(arguments: object) -> str:
    """Return the working folder that a call's arguments name; `.` if they name none."""
    value = _parse_json_text(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, Mapping):
        return "."
    fields = _lower_keys(value)
    inner = (fields.get(key) for key in _NESTING_KEYS)
    for table in (fields, *(_lower_keys(each) for each in inner if isinstance(each, Mapping))):
        for key in _FOLDER_KEYS:
            folder = table.get(key)
            if isinstance(folder, str) and folder:
                return folder
    return "."


class _ArgumentReader:
    """Reads the commands from a tool's arguments, in a shell that is None if unknown."""

    def __init__(self, shell: Shell | None) -> None:
        self.shell = shell

    def read(self, value: object, depth: int) -> Iterator[ExtractedCommand]:
        """Yield the commands in any value."""
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            yield from self._read_text(value, depth)
        elif isinstance(value, Mapping):
            yield from self._read_object(_lower_keys(value), depth)
        elif isinstance(value, list | tuple):
            yield from self._read_list(value, depth)

    def _read_text(self, text: str, depth: int) -> Iterator[ExtractedCommand]:
        inner = _parse_json_text(text)
        if inner is not None:
            yield from self.read(inner, depth + 1)
        elif text.strip():
            yield CommandLine(text, self.shell or infer_shell(text))

    def _read_list(self, items: Sequence[object], depth: int) -> Iterator[ExtractedCommand]:
        words = _convert_words(items)
        if words is None:
            for item in items:
                yield from self.read(item, depth + 1)
        elif len(words) == 1:
            yield from self._read_text(words[0], depth + 1)
        elif words:
            yield Argv(words)

    def _read_object(self, fields: Mapping[str, object], depth: int) -> Iterator[ExtractedCommand]:
        for key in _COMMAND_KEYS:
            if fields.get(key):
                yield from self._read_command(key, fields, depth)
                return
        nested = [fields[key] for key in (*_NESTING_KEYS, "args") if fields.get(key)]
        for value in nested:
            yield from self.read(value, depth + 1)

    def _read_command(
        self, key: str, fields: Mapping[str, object], depth: int
    ) -> Iterator[ExtractedCommand]:
        command, args = fields[key], fields.get("args")
        if key in _PROGRAM_KEYS:
            yield from _read_program(command, args or fields.get("arguments"))
            return
        if key == "code" and isinstance(command, str) and "language" in fields:
            yield from _read_code(command, str(fields["language"]).lower())
            return
        if key == "commands" and isinstance(command, list | tuple):
            for each in command:
                yield from self.read(each, depth + 1)
            return
        commands = tuple(self.read(command, depth + 1))
        yield from (_append_args(command, args) for command in commands) if args else commands


def _read_program(program: object, args: object) -> Iterator[ExtractedCommand]:
    if not isinstance(program, str):
        return
    words = _convert_words(args) if isinstance(args, list | tuple) else None
    yield Argv((program, *(words or _split_words(args))))


def _read_code(code: str, language: str) -> Iterator[ExtractedCommand]:
    """Yield the command that runs code of a language; nothing for unknown languages."""
    if language.startswith("py"):
        yield Argv(("python", "-c", code))
    elif language in _SHELLS or language == "shell":
        yield CommandLine(code, _SHELLS.get(language) or infer_shell(code))


def _append_args(command: ExtractedCommand, args: object) -> ExtractedCommand:
    """Append the separate `args` of a command."""
    words = _convert_words(args) if isinstance(args, list | tuple) else None
    if isinstance(command, Argv):
        return Argv((*command.words, *(words or _split_words(args))))
    if isinstance(args, str):
        return CommandLine(f"{command.text} {args}", command.shell)
    return CommandLine(f"{command.text} {shlex.join(words or ())}", command.shell)


def _get_python_code(arguments: object) -> str | None:
    """Return the source code of a call of the tool `python`; None if it has none."""
    if isinstance(arguments, str):
        arguments = _parse_json_text(arguments)
    fields = _lower_keys(arguments) if isinstance(arguments, Mapping) else {}
    code = fields.get("code")
    return code if isinstance(code, str) else None


def _prepend_python(command: ExtractedCommand) -> ExtractedCommand:
    """Prepend the interpreter to a command that consists only of its arguments."""
    if isinstance(command, Argv):
        return Argv(("python", *command.words)) if command.words[0].startswith("-") else command
    starts_with_option = command.text.lstrip().startswith("-")
    return CommandLine(f"python {command.text}", command.shell) if starts_with_option else command


def _read_pytest_call(arguments: object) -> Iterable[ExtractedCommand]:
    """Return the commands of a call of the tool `pytest`."""
    while isinstance(arguments, str) and (inner := _parse_json_text(arguments)) is not None:
        arguments = inner
    if not arguments or (isinstance(arguments, Mapping) and not any(arguments.values())):
        return (Argv(("pytest",)),)
    if isinstance(arguments, Mapping):
        fields = {key: value for key, value in _lower_keys(arguments).items() if value}
        targets = [fields.pop(key) for key in _PYTEST_TARGET_KEYS if key in fields]
        if fields.keys() <= _PYTEST_NEUTRAL_KEYS:
            return (Argv(("pytest", *(each for each in targets if isinstance(each, str)))),)
    return map(_prepend_pytest, _ArgumentReader(None).read(arguments, 0))


def _prepend_pytest(command: ExtractedCommand) -> ExtractedCommand:
    if isinstance(command, Argv):
        return command if _names_runner(command.words[0]) else Argv(("pytest", *command.words))
    first = command.text.split(maxsplit=1)[0]
    return command if _names_runner(first) else CommandLine(f"pytest {command.text}", command.shell)


def _names_runner(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"(pytest|py\.test|python[0-9.]*|py)(\.exe)?", name) is not None


def _lower_keys(fields: Mapping[object, object]) -> dict[str, object]:
    return {str(key).lower(): value for key, value in fields.items()}


def _convert_words(items: Sequence[object]) -> tuple[str, ...] | None:
    """Return a list of words as texts; None if it contains other values."""
    if any(not isinstance(item, str | int | float) for item in items):
        return None
    return tuple(map(str, items))


def _split_words(args: object) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args)) if isinstance(args, str) else ()
    except ValueError:
        return tuple(str(args).split())


def _parse_json_text(text: str) -> object | None:
    """Parse a JSON object, list or string; None for other texts."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None
