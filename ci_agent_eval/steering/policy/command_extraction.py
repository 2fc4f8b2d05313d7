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
from dataclasses import replace
from itertools import chain
from typing import get_args

from ci_agent_eval.steering.policy.model import (
    DetectionResult,
    Rules,
    Shell,
    ShellTools,
    ToolCallRequest,
)
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScript, make_words
from ci_agent_eval.steering.tables import read_sections

_NAMES = read_sections("tool_names.txt")
SHELL_TOOLS = frozenset(_NAMES["shell-tools"])
"""The tools that run commands; those that run only pytest are handled separately."""

PYTEST_TOOLS = frozenset(_NAMES["pytest-tools"])
"""The tools that run pytest with the given arguments."""

MAX_COMMANDS = 256
"""Maximum number of commands read from one call."""

MAX_DEPTH = 12
"""Maximum nesting depth of objects, lists and JSON strings in a call's arguments."""

MAX_CHARACTERS = 65_536
"""Maximum total length of a call's commands; the first one is always returned."""

_SHELLS: Mapping[str, Shell] = {name: shell for shell in get_args(Shell) for name in _NAMES[shell]}
"""Shells by tools and languages of code; that of other tools is inferred from the command."""
_PYTEST_NEUTRAL_KEYS = frozenset({*_NAMES["pytest-neutral"], *_NAMES["folder"]})
"""Arguments of pytest's tools that select no tests."""
_RUNNER = re.compile(r"(?:.*[/\\])?(?:pytest|py\.test|python[0-9.]*|py)(?:\.exe)?", re.IGNORECASE)

_MAX_INFERENCE_CHARACTERS = 8_192
"""Maximum number of characters that are searched."""
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(?:\"\"|\\?\w)")
"""A here-document's header, after the replacement of quotes. Only bash has them, with any text."""
_START = r"(?:^|[\n;|&(]|\bcall\b)[ \t]*"
"""The position of a program."""
_WINDOWS_PROGRAM = re.compile(
    rf"{_START}(?:[A-Za-z]:|%\w+%|\$(?:env:)?\w+|[\w.~-]+)(?:\\[\w.-]+)+", re.IGNORECASE
)
r"""A program's Windows path, such as `.venv\Scripts\pytest.exe`; bash drops its backslashes."""
_POWERSHELL = re.compile(
    r"\$env:\w"
    r"|(?:^|[\n;(])[ \t]*(?:&[ \t]*[\"'.\w$]|\$\w+[ \t]+=|try[ \t]*\{)"
    r"|(?:^|[\n;])[ \t]*(?:if|foreach)[ \t]*\([^\n]{0,200}\)[ \t]*\{"
    rf"|{_START}(?:Get|Set|Select|Out|Where|ForEach|Test|Push|Pop|Tee|Measure|Write|Remove|New"
    r"|Invoke|Start)-[A-Z]\w+"
)
"""Environment variables, the call operator, assignments, blocks and cmdlets of PowerShell."""
_CMD = re.compile(
    r"(?:^|&|\n)[ \t]*(?:@?echo[ ]off|@\w|call[ ]|start[ ]|set[ ]\"?\w+=|cd[ ]/d[ ]|"
    r"if[ ](?:not[ ])?(?:exist|defined|errorlevel)[ ])|%[A-Z_]{2,}%",
    re.IGNORECASE,
)

ExtractedCommand = ShellScript | ShellCommand
"""A text for a shell, or a program with its arguments."""

_NO_TOOLS: ShellTools = {}


def extract_commands(
    call: ToolCallRequest, shell_tools: ShellTools = _NO_TOOLS
) -> tuple[ExtractedCommand, ...]:
    """Return the commands in a call; empty if its tool runs no commands. Never raises."""
    arguments = _parse_arguments(call.arguments)
    return _limit_commands(_read_call(call.tool, arguments, shell_tools))[0]


def runs_commands(tool: object, shell_tools: ShellTools) -> bool:
    """Return whether a tool of this name runs commands."""
    is_known = _identify_shell_tool(tool) in SHELL_TOOLS
    return is_known or _find_argument_names(tool, shell_tools) is not None


def normalize_tool_name(name: object) -> str:
    """Return a tool's name in lower case and without its namespace.

    The namespace ends with `__`, as with MCP servers, or with a dot: `functions.bash`.
    """
    short_name = str(name).strip().lower().rpartition("__")[2]
    last_part = short_name.rpartition(".")[2]
    if short_name not in SHELL_TOOLS and last_part in SHELL_TOOLS | PYTEST_TOOLS:
        return last_part
    return short_name


def render_command(command: ExtractedCommand) -> str:
    """Return a command as one line of text."""
    return command.text if isinstance(command, ShellScript) else command.command_line


def detect_full_suite(call: ToolCallRequest, rules: Rules) -> DetectionResult:
    """Detect whether any command of a call would run the full suite. Never raises."""
    arguments = _parse_arguments(call.arguments)
    commands, is_truncated = _limit_commands(_read_call(call.tool, arguments, rules.shell_tools))
    if not commands:
        is_listed = _identify_shell_tool(call.tool) in SHELL_TOOLS | PYTEST_TOOLS
        reason = "no command is in the arguments" if is_listed else "the tool runs no commands"
        return DetectionResult(pytest=False, full_suite=False, reason=reason)
    # Loads the grammar only for calls with commands.
    from ci_agent_eval.steering.policy.detection import detect_in_command  # noqa: PLC0415 - as said

    folder = _find_folder(arguments)
    results = [detect_in_command(command, rules, folder) for command in commands]
    deciding = max(results, key=lambda result: (result.full_suite, result.pytest))
    reason = deciding.reason
    if is_truncated:
        reason += "; the call holds more than is looked at"
    intents = dict.fromkeys(intent for result in results for intent in result.intents)
    return replace(deciding, reason=reason, intents=tuple(intents))


def _limit_commands(
    commands: Iterable[ExtractedCommand],
) -> tuple[tuple[ExtractedCommand, ...], bool]:
    """Return the first commands, and whether the limits cut others off."""
    read: list[ExtractedCommand] = []
    remaining = MAX_CHARACTERS
    for command in commands:
        remaining -= len(render_command(command))
        if read and (remaining < 0 or len(read) == MAX_COMMANDS):
            return tuple(read), True
        read.append(command)
    return tuple(read), False


def _parse_arguments(value: object, depth: int = 0) -> object:
    """Return arguments with parsed JSON texts and keys in lower case; None if too deep."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "[", '"'}:
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return _parse_arguments(parsed, depth + 1)
    if isinstance(value, Mapping):
        return {str(key).lower(): _parse_arguments(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and _convert_words(value) is None:
        return [_parse_arguments(each, depth + 1) for each in value]
    return value


# Tools


def _read_call(
    tool: object, arguments: object, shell_tools: ShellTools
) -> Iterable[ExtractedCommand]:
    argument_names = _find_argument_names(tool, shell_tools)
    if argument_names is not None:
        if argument_names and isinstance(arguments, Mapping):
            values = map(arguments.get, map(str.lower, argument_names))
            arguments = next(filter(None, values), None)
        return _read_value(arguments, "bash")
    name = _identify_shell_tool(tool)
    if name in PYTEST_TOOLS:
        return _read_pytest_call(arguments)
    if name == "python":
        return _read_python_call(arguments)
    return _read_value(arguments, _SHELLS.get(name)) if name in SHELL_TOOLS else ()


def _find_argument_names(tool: object, shell_tools: ShellTools) -> tuple[str, ...] | None:
    """Return a tool's argument names from the settings; None if they do not name the tool."""
    names_by_tool = {name.strip().lower(): keys for name, keys in shell_tools.items()}
    full_name = str(tool).strip().lower()
    short_name = full_name.rpartition("__")[2]
    candidates = (full_name, short_name, short_name.rpartition(".")[2])
    return next((names_by_tool[name] for name in candidates if name in names_by_tool), None)


def _identify_shell_tool(name: object) -> str:
    """Return the entry of `SHELL_TOOLS` for a tool, or its name without its namespace."""
    is_mcp_run = re.fullmatch(r"mcp__.+__run", str(name).strip().lower())
    return "mcp__*__run" if is_mcp_run else normalize_tool_name(name)


def _find_folder(arguments: object) -> str:
    """Return the working folder that a call's arguments name; `.` if they name none."""
    fields = arguments if isinstance(arguments, Mapping) else {}
    for table in (fields, *map(fields.get, _NAMES["nesting"])):
        for key in _NAMES["folder"]:
            folder = table.get(key) if isinstance(table, Mapping) else None
            if isinstance(folder, str) and folder:
                return folder
    return "."


def _read_pytest_call(arguments: object) -> Iterator[ExtractedCommand]:
    """Yield the commands of a call of the tool `pytest`."""
    fields = arguments if isinstance(arguments, Mapping) else {}
    others = {key: value for key, value in fields.items() if value}
    targets = [others.pop(key) for key in _NAMES["pytest-target"] if key in others]
    is_mapping = isinstance(arguments, Mapping)
    if not arguments or (is_mapping and others.keys() <= _PYTEST_NEUTRAL_KEYS):
        yield _build_command("pytest", *(t for t in targets if isinstance(t, str)))
        return
    for command in _read_value(arguments, None):
        first_word = _get_first_word(command)
        yield command if _RUNNER.fullmatch(first_word) else _add_words(command, before="pytest")


def _read_python_call(arguments: object) -> Iterator[ExtractedCommand]:
    """Yield the commands of a call of the tool `python`, which gets code or options."""
    code = arguments.get("code") if isinstance(arguments, Mapping) else None
    if isinstance(code, str):
        yield _build_command("python", "-c", code)
        return
    for command in _read_value(arguments, None):
        is_option = _get_first_word(command).startswith("-")
        yield _add_words(command, before="python") if is_option else command


def _get_first_word(command: ExtractedCommand) -> str:
    words = command.text.split(maxsplit=1) if isinstance(command, ShellScript) else ()
    return words[0] if words else render_command(command).split(" ")[0]


# Forms of arguments


def _read_value(value: object, shell: Shell | None) -> Iterator[ExtractedCommand]:
    """Yield the commands in any value, for a shell that is None if unknown."""
    if isinstance(value, str):
        if value.strip():
            yield ShellScript(value, shell or infer_shell(value))
    elif isinstance(value, Mapping):
        yield from _read_object(value, shell)
    elif isinstance(value, list | tuple):
        words = _convert_words(value)
        if words is not None and len(words) > 1:
            yield _build_command(*words)
        else:
            items = value if words is None else map(_parse_arguments, words)
            yield from chain.from_iterable(_read_value(item, shell) for item in items)


def _read_object(fields: Mapping[str, object], shell: Shell | None) -> Iterator[ExtractedCommand]:
    key = next((key for key in _NAMES["command"] if fields.get(key)), None)
    if key is None:
        nested = (fields[key] for key in (*_NAMES["nesting"], "args") if fields.get(key))
        yield from chain.from_iterable(_read_value(each, shell) for each in nested)
        return
    command, args = fields[key], fields.get("args")
    if key in {"program", "executable"}:
        if isinstance(command, str):
            yield _build_command(command, *_split_words(args or fields.get("arguments")))
    elif key == "code" and isinstance(command, str) and "language" in fields:
        yield from _read_code(command, str(fields["language"]).lower())
    elif key == "commands" and isinstance(command, list | tuple):
        yield from chain.from_iterable(_read_value(_parse_arguments(c), shell) for c in command)
    else:
        commands = _read_value(command, shell)
        yield from (_add_words(each, after=args) for each in commands) if args else commands


def _read_code(code: str, language: str) -> Iterator[ExtractedCommand]:
    """Yield the command that runs code of a language; nothing for unknown languages."""
    if language.startswith("py"):
        yield _build_command("python", "-c", code)
    elif language in _SHELLS or language == "shell":
        yield ShellScript(code, _SHELLS.get(language) or infer_shell(code))


def _build_command(*words: str) -> ShellCommand:
    return ShellCommand(make_words(*words))


def _add_words(
    command: ExtractedCommand, *, before: str = "", after: object = ""
) -> ExtractedCommand:
    """Return a command with a program before it, or with separate arguments behind it."""
    words = _split_words(after)
    if isinstance(command, ShellCommand):
        first = make_words(before) if before else ()
        return command.with_words((*first, *command.words, *make_words(*words)))
    last = after if isinstance(after, str) else shlex.join(words)
    return replace(command, text=" ".join(filter(None, (before, command.text, last))))


def _convert_words(items: Sequence[object]) -> tuple[str, ...] | None:
    """Return a list of words as texts; None if it contains other values."""
    if any(not isinstance(item, str | int | float) for item in items):
        return None
    return tuple(map(str, items))


def _split_words(args: object) -> tuple[str, ...]:
    if isinstance(args, list | tuple):
        return _convert_words(args) or ()
    try:
        return tuple(shlex.split(args)) if isinstance(args, str) else ()
    except ValueError:
        return tuple(str(args).split())


def infer_shell(text: str) -> Shell:
    """Return the shell whose syntax a command has.

    Only a program with a Windows path or PowerShell's own syntax is not bash. A text with a
    here-document is always bash.
    """
    unquoted = _QUOTED.sub('""', text[:_MAX_INFERENCE_CHARACTERS])
    if _HERE_DOCUMENT.search(unquoted):
        return "bash"
    if _POWERSHELL.search(unquoted):
        return "powershell"
    if not _WINDOWS_PROGRAM.search(unquoted):
        return "bash"
    return "cmd" if _CMD.search(unquoted) else "powershell"
