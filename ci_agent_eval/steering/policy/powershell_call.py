"""Unwrapping of `powershell`, `pwsh` and PowerShell's cmdlets that run other commands."""

from __future__ import annotations

import base64
import binascii

from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, ShellScript, Word

_VALUED = ("configurationname", "custompipename", "executionpolicy", "ep", "ex", "inputformat",
           "outputformat", "of", "if", "psconsolefile", "settingsfile", "version", "windowstyle",
           "w", "workingdirectory", "wd")  # fmt: skip
_ENCODED = ("e", "ec", "en", "enc", "enco", "encod", "encode", "encoded", "encodedcommand")


def unwrap_powershell(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Return the script that a call of PowerShell runs; empty for a script file."""
    words = command.words[1:]
    at = 0
    while at < len(words):
        name = words[at].text.casefold()
        if name[:1] not in "-/" or len(name) == 1:
            break
        name = name.lstrip("-/")
        at += 1
        if name in _ENCODED:
            return (
                [ShellScript(_decode_command(words[at].text), "powershell")]
                if at < len(words)
                else []
            )
        if "command".startswith(name) or name == "commandwithargs":
            break
        if "file".startswith(name):
            return []
        at += name in _VALUED
    text = " ".join(word.text for word in words[at:])
    if text in {"", "-"}:
        text = command.stdin or ""
    return [ShellScript(text, "powershell")]


def _decode_command(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-16-le", "replace")
    except (binascii.Error, ValueError):
        return ""


def unwrap_invoke_expression(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Return the script of `Invoke-Expression`, from its arguments or its input."""
    words = [word for word in command.words[1:] if word.text.casefold() != "-command"]
    text = " ".join(word.text for word in words) or command.stdin or ""
    return [ShellScript(text, "powershell", same_shell=True)]


def unwrap_start_process(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Return the command of `Start-Process`; its arguments may be one text or a list."""
    words = list(command.words[1:])
    program: Word | None = None
    arguments: list[Word] = []
    while words:
        word = words.pop(0)
        name = word.text.casefold()
        if name in {"-filepath", "-path"} and words:
            program = words.pop(0)
        elif "-argumentlist".startswith(name) and len(name) > 1 and words:
            arguments = _take_list(words)
        elif name in {"-workingdirectory", "-redirectstandardoutput", "-redirectstandarderror"}:
            del words[:1]
        elif not name.startswith("-"):
            if program is None:
                program = word
            else:
                arguments = _take_list([word, *words])
    return [command.with_words((program, *arguments))] if program is not None else []


def _take_list(words: list[Word]) -> list[Word]:
    """Remove the values `a, b,c` from the words and return them."""
    taken: list[Word] = []
    while words:
        word = words.pop(0)
        has_more = word.text.endswith(",") or (bool(words) and words[0].text.startswith(","))
        taken.extend(
            Word(part, word.known) for text in word.text.split(",") for part in text.split()
        )
        if not has_more:
            break
    return taken
