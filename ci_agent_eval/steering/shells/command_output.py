"""Predicted output of simple commands: `echo`, `printf`, `cat`, `which`, `pwd`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name

_ESCAPES = (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\\\", "\\"), ("%%", "%"))


def predict_output(command: ShellCommand, files: Mapping[str, str]) -> str | None:
    """Return the output of a command; None if it is not predictable."""
    if not command.words:
        return None
    printer = _PRINTERS.get(get_program_name(command.words[0]))
    return printer(command, files) if printer else None


def _get_known_texts(words: tuple[Word, ...]) -> list[str] | None:
    return [word.text for word in words] if all(word.known for word in words) else None


def _predict_echo(command: ShellCommand, _: Mapping[str, str]) -> str:
    words = list(command.words[1:])
    escapes = False
    while words and words[0].text in {"-n", "-e", "-E", "-ne", "-en"}:
        escapes |= "e" in words.pop(0).text
    text = " ".join(word.text for word in words)
    return _unescape_text(text) if escapes else text


def _unescape_text(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text


def _predict_printf(command: ShellCommand, _: Mapping[str, str]) -> str | None:
    texts = _get_known_texts(command.words[1:])
    if not texts:
        return None
    template, *values = texts
    if "%" not in template.replace("%%", ""):
        return _unescape_text(template)
    end = "\n" if template.endswith("\\n") else " "
    return end.join(_unescape_text(value) if "%b" in template else value for value in values)


def _predict_cat(command: ShellCommand, files: Mapping[str, str]) -> str | None:
    names = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    if not names:
        return command.stdin
    parts = [files.get(name.removeprefix("./")) for name in names]
    return None if None in parts else "".join(part for part in parts if part is not None)


def _predict_which(command: ShellCommand, _: Mapping[str, str]) -> str | None:
    names = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    return names[0] if names else None


def _predict_command(command: ShellCommand, files: Mapping[str, str]) -> str | None:
    is_lookup = len(command.words) > 1 and command.words[1].text in {"-v", "-V"}
    return _predict_which(command, files) if is_lookup else None


def _predict_pwd(_: ShellCommand, __: Mapping[str, str]) -> str:
    return "."


def _predict_git(command: ShellCommand, _: Mapping[str, str]) -> str | None:
    """Predict the repository's root, which for a suite is `.` or a parent folder."""
    return "." if "--show-toplevel" in [word.text for word in command.words] else None


def _predict_tee(command: ShellCommand, _: Mapping[str, str]) -> str | None:
    return command.stdin


_PRINTERS: dict[str, Callable[[ShellCommand, Mapping[str, str]], str | None]] = {
    "cat": _predict_cat,
    "command": _predict_command,
    "echo": _predict_echo,
    "git": _predict_git,
    "printf": _predict_printf,
    "pwd": _predict_pwd,
    "tee": _predict_tee,
    "type": _predict_which,
    "which": _predict_which,
    "write-output": _predict_echo,
}
