"""Inference of the shell that reads a command, for tools whose name does not tell it. Pure."""

from __future__ import annotations

import re
import sys

from ci_agent_eval.steering.policy.model import Shell

IS_WINDOWS = sys.platform == "win32"

_MAX_CHARACTERS = 8_192
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
_BACKSLASH = re.compile(r"\\(?:[\w.]|\s*$)")
"""A backslash in a path; not the escape of an operator or of a line's end."""
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


def infer_shell(text: str, *, windows: bool = IS_WINDOWS) -> Shell:
    """Return the shell whose syntax a command has; `windows` is the platform that runs it.

    On other platforms only a program with a Windows path or PowerShell's own syntax is no bash. A
    text with a here-document is bash on all of them.
    """
    unquoted = _QUOTED.sub('""', text[:_MAX_CHARACTERS])
    if _HERE_DOCUMENT.search(unquoted):
        return "bash"
    if _POWERSHELL.search(unquoted):
        return "powershell"
    is_cmd = _CMD.search(unquoted) is not None
    if windows and is_cmd:
        return "cmd"
    has_path = _WINDOWS_PROGRAM.search(unquoted) or (windows and _BACKSLASH.search(unquoted))
    if not has_path:
        return "bash"
    return "cmd" if is_cmd else "powershell"
