"""What a command prints, where its text says so: `echo`, `printf`, `cat`, `which`, `pwd`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ci_agent_eval.steering.policy.words import Command, Word, program_of

_ESCAPES = (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\\\", "\\"), ("%%", "%"))


def output_of(command: Command, files: Mapping[str, str]) -> str | None:
    """Return what a command prints; None when only a run can tell."""
    if not command.words:
        return None
    printer = _PRINTERS.get(program_of(command.words[0]))
    return printer(command, files) if printer else None


def _texts(words: tuple[Word, ...]) -> list[str] | None:
    return [word.text for word in words] if all(word.known for word in words) else None


def _echo(command: Command, _: Mapping[str, str]) -> str:
    words = list(command.words[1:])
    escapes = False
    while words and words[0].text in {"-n", "-e", "-E", "-ne", "-en"}:
        escapes |= "e" in words.pop(0).text
    text = " ".join(word.text for word in words)
    return _unescaped(text) if escapes else text


def _unescaped(text: str) -> str:
    for written, meant in _ESCAPES:
        text = text.replace(written, meant)
    return text


def _printf(command: Command, _: Mapping[str, str]) -> str | None:
    texts = _texts(command.words[1:])
    if not texts:
        return None
    form, *values = texts
    if "%" not in form.replace("%%", ""):
        return _unescaped(form)
    end = "\n" if form.endswith("\\n") else " "
    return end.join(_unescaped(value) if "%b" in form else value for value in values)


def _cat(command: Command, files: Mapping[str, str]) -> str | None:
    names = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    if not names:
        return command.stdin
    parts = [files.get(name.removeprefix("./")) for name in names]
    return None if None in parts else "".join(part for part in parts if part is not None)


def _which(command: Command, _: Mapping[str, str]) -> str | None:
    names = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    return names[0] if names else None


def _command(command: Command, files: Mapping[str, str]) -> str | None:
    asks = len(command.words) > 1 and command.words[1].text in {"-v", "-V"}
    return _which(command, files) if asks else None


def _pwd(_: Command, __: Mapping[str, str]) -> str:
    return "."


def _git(command: Command, _: Mapping[str, str]) -> str | None:
    """Return the root of the repository, which for a suite is `.` or above it."""
    return "." if "--show-toplevel" in [word.text for word in command.words] else None


def _pass_on(command: Command, _: Mapping[str, str]) -> str | None:
    return command.stdin


_PRINTERS: dict[str, Callable[[Command, Mapping[str, str]], str | None]] = {
    "cat": _cat,
    "command": _command,
    "echo": _echo,
    "git": _git,
    "printf": _printf,
    "pwd": _pwd,
    "tee": _pass_on,
    "type": _which,
    "which": _which,
    "write-output": _echo,
}
