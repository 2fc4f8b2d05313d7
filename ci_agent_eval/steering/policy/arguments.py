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

from ci_agent_eval.steering.policy.model import Finding, Rules, Shell, ShellTools, ToolCall

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
class ShellText:
    """A command line, as a shell would read it."""

    text: str
    shell: Shell = "bash"


@dataclass(frozen=True, slots=True)
class Argv:
    """A program and its arguments, which no shell reads."""

    words: tuple[str, ...]


Found = ShellText | Argv


_NO_TOOLS: ShellTools = {}


def commands_of(call: ToolCall, shell_tools: ShellTools = _NO_TOOLS) -> tuple[Found, ...]:
    """Return the commands in a call; none where the tool runs no commands. Never raises."""
    return _commands(_as_known(call, shell_tools))[0]


def runs_commands(tool: object, shell_tools: ShellTools) -> bool:
    """Return whether a tool of this name runs commands."""
    return tool_name(tool) in SHELL_TOOLS or _keys_of(tool, shell_tools) is not None


def _as_known(call: ToolCall, shell_tools: ShellTools) -> ToolCall:
    """Return a call of a tool that the user named as one of `bash`; any other as it is."""
    keys = _keys_of(call.tool, shell_tools)
    if keys is None:
        return call
    arguments: object = call.arguments
    if isinstance(arguments, str):
        arguments = _json_in(arguments) or arguments
    if not keys or not isinstance(arguments, Mapping):
        return ToolCall("bash", arguments)
    fields = _lowered(arguments)
    return ToolCall("bash", [fields[key.lower()] for key in keys if fields.get(key.lower())][:1])


def _keys_of(tool: object, shell_tools: ShellTools) -> tuple[str, ...] | None:
    """Return the argument names that the user gave for a tool; None for a tool not named."""
    named = {name.strip().lower(): keys for name, keys in shell_tools.items()}
    whole = str(tool).strip().lower()
    plain = whole.rpartition("__")[2]
    candidates = (whole, plain, plain.rpartition(".")[2])
    return next((named[name] for name in candidates if name in named), None)


def _commands(call: ToolCall) -> tuple[tuple[Found, ...], bool]:
    """Return the commands in a call, and whether there are more than are looked at."""
    tool = tool_name(call.tool)
    if tool == "pytest":
        return _bounded(_of_pytest(call.arguments))
    if tool not in SHELL_TOOLS:
        return (), False
    if tool == "python" and (code := _code_in(call.arguments)) is not None:
        return (Argv(("python", "-c", code)),), False
    found = _Reader(_SHELLS.get(tool, "bash")).of(call.arguments, 0)
    return _bounded(map(_completed, found) if tool == "python" else found)


def _bounded(commands: Iterable[Found]) -> tuple[tuple[Found, ...], bool]:
    kept: list[Found] = []
    left = MAX_CHARACTERS
    for found in commands:
        left -= len(text_of(found))
        if kept and (left < 0 or len(kept) == MAX_COMMANDS):
            return tuple(kept), True
        kept.append(found)
    return tuple(kept), False


def tool_name(name: object) -> str:
    """Return a tool's name as it is compared: in lower case, without what it belongs to.

    That stands before it with `__`, as of an MCP server, or with a dot: `functions.bash`.
    """
    plain = str(name).strip().lower().rpartition("__")[2]
    last = plain.rpartition(".")[2]
    return last if plain not in SHELL_TOOLS and last in {*SHELL_TOOLS, "pytest"} else plain


def text_of(found: Found) -> str:
    """Return a command as one line of text."""
    return found.text if isinstance(found, ShellText) else shlex.join(found.words)


def find(call: ToolCall, rules: Rules) -> Finding:
    """Say what a call would do: one command that runs the full suite is enough. Never raises."""
    # The grammar is loaded only for calls that hold commands.
    from ci_agent_eval.steering.policy.detection import detect, detect_argv  # noqa: PLC0415 - as said

    call = _as_known(call, rules.shell_tools)
    commands, more = _commands(call)
    if not commands:
        return Finding(pytest=False, full_suite=False, reason=_why_none(call))
    findings = [
        detect(found.text, shell=found.shell, rules=rules)
        if isinstance(found, ShellText)
        else detect_argv(found.words, rules=rules)
        for found in commands
    ]
    deciding = max(findings, key=lambda finding: (finding.full_suite, finding.pytest))
    return Finding(
        pytest=deciding.pytest,
        full_suite=deciding.full_suite,
        reason=f"{deciding.reason}; the call holds more than is looked at"
        if more
        else deciding.reason,
        command=deciding.command,
        normal="\n".join(finding.normal for finding in findings),
    )


def _why_none(call: ToolCall) -> str:
    tool = tool_name(call.tool)
    if tool in SHELL_TOOLS or tool == "pytest":
        return "no command is in the arguments"
    return "the tool runs no commands"


class _Reader:
    """Walks through arguments of one tool."""

    def __init__(self, shell: Shell) -> None:
        self.shell: Shell = shell

    def of(self, value: object, depth: int) -> Iterator[Found]:
        """Yield the commands in any value."""
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            yield from self._of_text(value, depth)
        elif isinstance(value, Mapping):
            yield from self._of_object(_lowered(value), depth)
        elif isinstance(value, list | tuple):
            yield from self._of_list(value, depth)

    def _of_text(self, text: str, depth: int) -> Iterator[Found]:
        inner = _json_in(text)
        if inner is not None:
            yield from self.of(inner, depth + 1)
        elif text.strip():
            yield ShellText(text, self.shell)

    def _of_list(self, items: Sequence[object], depth: int) -> Iterator[Found]:
        words = _words(items)
        if words is None:
            for item in items:
                yield from self.of(item, depth + 1)
        elif len(words) == 1:
            yield from self._of_text(words[0], depth + 1)
        elif words:
            yield Argv(words)

    def _of_object(self, fields: Mapping[str, object], depth: int) -> Iterator[Found]:
        for key in _COMMAND_KEYS:
            if fields.get(key):
                yield from self._of_command(key, fields, depth)
                return
        nested = [fields[key] for key in (*_NESTING_KEYS, "args") if fields.get(key)]
        for value in nested:
            yield from self.of(value, depth + 1)

    def _of_command(self, key: str, fields: Mapping[str, object], depth: int) -> Iterator[Found]:
        command, args = fields[key], fields.get("args")
        if key == "commands" and isinstance(command, list | tuple):
            for each in command:
                yield from self.of(each, depth + 1)
            return
        commands = tuple(self.of(command, depth + 1))
        yield from (_with_args(found, args) for found in commands) if args else commands


def _with_args(found: Found, args: object) -> Found:
    """Put the arguments that stand beside a command behind it."""
    words = _words(args) if isinstance(args, list | tuple) else None
    if isinstance(found, Argv):
        return Argv((*found.words, *(words or _split(args))))
    if isinstance(args, str):
        return ShellText(f"{found.text} {args}", found.shell)
    return ShellText(f"{found.text} {shlex.join(words or ())}", found.shell)


def _code_in(arguments: object) -> str | None:
    """Return the source that the tool `python` is to run, where it is given as such."""
    if isinstance(arguments, str):
        arguments = _json_in(arguments)
    fields = _lowered(arguments) if isinstance(arguments, Mapping) else {}
    code = fields.get("code")
    return code if isinstance(code, str) else None


def _completed(found: Found) -> Found:
    """Put the interpreter before what the tool `python` gets only the arguments of."""
    if isinstance(found, Argv):
        return Argv(("python", *found.words)) if found.words[0].startswith("-") else found
    starts = found.text.lstrip().startswith("-")
    return ShellText(f"python {found.text}", found.shell) if starts else found


def _of_pytest(arguments: object) -> Iterable[Found]:
    """Read the call of a tool that is pytest itself: its arguments are pytest's."""
    while isinstance(arguments, str) and (inner := _json_in(arguments)) is not None:
        arguments = inner
    if not arguments or (isinstance(arguments, Mapping) and not any(arguments.values())):
        return (Argv(("pytest",)),)
    return map(_prefixed, _Reader("bash").of(arguments, 0))


def _prefixed(found: Found) -> Found:
    if isinstance(found, Argv):
        return found if _names_runner(found.words[0]) else Argv(("pytest", *found.words))
    first = found.text.split(maxsplit=1)[0]
    return found if _names_runner(first) else ShellText(f"pytest {found.text}", found.shell)


def _names_runner(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"(pytest|py\.test|python[0-9.]*|py)(\.exe)?", name) is not None


def _lowered(fields: Mapping[object, object]) -> dict[str, object]:
    return {str(key).lower(): value for key, value in fields.items()}


def _words(items: Sequence[object]) -> tuple[str, ...] | None:
    """Return a list of words as texts; None where something else is in it."""
    if any(not isinstance(item, str | int | float) for item in items):
        return None
    return tuple(map(str, items))


def _split(args: object) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args)) if isinstance(args, str) else ()
    except ValueError:
        return tuple(str(args).split())


def _json_in(text: str) -> object | None:
    """Return the object, list or text that a text holds as JSON; None where it is no JSON."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    parse: Callable[[str], object] = json.loads
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None
