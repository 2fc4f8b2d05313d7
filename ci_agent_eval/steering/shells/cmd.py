r"""cmd.exe: a line or a batch file is rewritten as bash, which has the same pipes and redirections.

It follows the help texts of `cmd /?`, `if /?`, `for /?` and `start /?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope
from ci_agent_eval.steering.shells.bash import parse_bash_commands
from ci_agent_eval.steering.shells.grammar import is_too_long

_WORD = r"(?:\"[^\"\n]*\"|[^\s\"])+"
_CONDITION = (
    rf"(?:exist|defined|errorlevel|cmdextversion)[ \t]+{_WORD}"
    rf"|(?:\"[^\"\n]*\"|[^\s\"=])*[ \t]*==[ \t]*{_WORD}"
    rf"|{_WORD}[ \t]+(?:equ|neq|lss|leq|gtr|geq)[ \t]+{_WORD}"
)
_PREFIX = re.compile(
    r"[ \t,;=@(]+"
    r"|(?:call|else|do)\b"
    rf"|if[ \t]+(?:/i[ \t]+)?(?:not[ \t]+)?(?:{_CONDITION})"
    r"|for\b[^(\n]*\([^)\n]*\)"
    r"|start\b(?:[ \t]+(?:\"[^\"\n]*\"|/d[ \t]+\S+|/\S+))*"
    r"|(?:rem\b|:)[^\n]*",
    re.IGNORECASE,
)
"""What may stand before a command; a comment or a mark is all of a line."""
_SET = re.compile(r"set[ \t]+(?:/[ap][ \t]+)?\"?(\w+)=([^\"&|\n]*)\"?", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<quoted>\"[^\"\n]*\"?)"
    r"|\^(?P<escape>.)"
    r"|(?P<break>&&|\|\|?|&(?!\d)|\n|[()])"
    r"|(?P<variable>%(?:\w+)(?::[^%\n]*)?%|!\w+!|%%?~?[a-z]*[\w*])"
    r"|(?P<plain>[^\"^&|\n()%!]+|.)",
    re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"[\w*]+")
_BLANK = re.compile(r"(?<=\s)[;,=]+|[;,=]+(?=\s|\Z)")
_SPECIAL = re.compile(r"[;$`'#{}*?\[\]~]")


def parse_cmd_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and update `scope`."""
    if is_too_long(text):
        scope.limits.is_incomplete = True
        return
    plain = text.replace("\r\n", "\n").replace("^\n", " ")
    yield from parse_bash_commands("".join(_rewrite(plain)), scope)


def _rewrite(text: str) -> Iterator[str]:
    at = 0
    is_start = True
    while at < len(text):
        if is_start and (prefix := _PREFIX.match(text, at)):
            at = prefix.end()
        elif is_start and (assignment := _SET.match(text, at)):
            at, is_start = assignment.end(), False
            yield f"{assignment[1].upper()}={_quote(assignment[2].strip())}"
        elif token := _TOKEN.match(text, at):
            yield _rewrite_token(token, is_start=is_start)
            at, is_start = token.end(), token.lastgroup == "break"


def _rewrite_token(token: re.Match[str], *, is_start: bool) -> str:
    text = token[0]
    match token.lastgroup:
        case "quoted":
            return _quote(text.strip('"'))
        case "escape":
            return f"\\{token['escape']}"
        case "variable":
            return _rewrite_variable(text)
        case "break" if text in {"&", "\n", "(", ")"}:
            return "\n"
        case "break":
            return f": {text} " if is_start else text
    return _SPECIAL.sub(r"\\\g<0>", _BLANK.sub(" ", text).replace("\\", "/"))


def _quote(text: str) -> str:
    parts = re.split(r"(%\w+(?::[^%\n]*)?%|!\w+!|%%?\w)", text)
    quoted = [re.sub(r"[\\\"$`]", r"\\\g<0>", part) for part in parts[::2]]
    variables = [*map(_rewrite_variable, parts[1::2]), ""]
    return '"' + "".join(map("".join, zip(quoted, variables, strict=True))) + '"'


def _rewrite_variable(text: str) -> str:
    """Return a variable of any case as bash writes it; `%1` and `%*` are parameters."""
    match = _NAME.search(text)
    name = (match[0] if match else text).upper()
    if name == "CD":
        return "."
    return f"${{{name[-1] if name[-1] in '*0123456789' and text[-1] not in '%!' else name}}}"
