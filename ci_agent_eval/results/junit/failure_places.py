"""The message of a failed case, and its source line: from stack traces, for any language.

The message is the first line that says more than the outcome.

Most producers write no line. Their stack traces do, with absolute paths of another machine, with
paths relative to a subfolder (jest, vitest), or with the bare file name (Go, Java). Such a path
counts only if it leads to one file of the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import JUnitCase

MAX_LENGTH = 1000

_OUTCOMES = frozenset(
    {"error", "failed", "failure", "fail", "none", "test error", "test failed", "test failure"}
)
"""Messages that repeat the outcome (gotestsum, go-junit-report, nose2)."""
_NOISE = re.compile(
    r"=== (?:RUN|PAUSE|CONT|NAME)\b|--- FAIL:|FAIL\b|Error Trace:"  # Go, testify
    r"|(?:● )?Test suite failed to run$"  # jest
    r"|(?:\u276f )?\(?(?:in test file )?[^\s:]{1,400}(?::|, line )\d{1,7}(?::\d{1,7})?[):]?$"
    r"|[\W_]*$"  # rules
)
_GO_PLACE = re.compile(r"[\w.-]{1,200}\.go:\d{1,7}:\s*")
_GO_LINE = re.compile(r"^[ \t]+[\w.-]{1,200}\.go:\d{1,7}:", re.MULTILINE)
_GO_OUTPUT = re.compile(r"^[ \t]*(?:=== RUN|--- FAIL:)", re.MULTILINE)
_ANSI = re.compile(r"[\x1b\ufffd]\[[0-9;]{0,20}[A-Za-z]")
"""Escape sequences of terminals; the reader of XML replaces their first character by U+FFFD."""
_PYTHON_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")
_AFTER_PLACE = ">:]\u203a"
"""The characters that end a test's place before its name."""
_MOST_CONTINUED = 5
"""Number of lines that continue a first line that ends with a colon (GoogleTest)."""


def find_message(name: str, message: str | None, text: str | None) -> str | None:
    """Return the first informative line of a message or a failure text, else any line, or None."""
    message, text = remove_ansi(message), remove_ansi(text)
    informative = [*_iterate_informative(message), *_iterate_informative(find_core(text))]
    return next(
        (line for line in informative if not _is_empty_phrase(line, name)),
        _find_first_line(message) or _find_first_line(text),
    )


def remove_ansi(text: str | None) -> str | None:
    """Return a text without escape sequences of terminals."""
    return None if text is None else _ANSI.sub("", text)


def find_core(text: str | None) -> str | None:
    """Return the part of a failure text that explains the failure.

    Python writes its exception last. Go writes logs before the failure, in the same form.
    """
    if text is None:
        return None
    if _PYTHON_TRACEBACK in text:
        trace = text.rpartition(_PYTHON_TRACEBACK)[2].splitlines()
        at = next((i for i, line in enumerate(trace) if _PYTHON_EXCEPTION.match(line)), 0)
        return "\n".join(trace[at:])
    if _GO_OUTPUT.search(text):
        *_, last = (0, *(line.start() for line in _GO_LINE.finditer(text)))
        return text[last:]
    return text


def _is_empty_phrase(line: str, name: str) -> bool:
    """Return whether a line only repeats the outcome, or the test's name and place."""
    if line.lower().rstrip(".!") in _OUTCOMES:
        return True
    before, found, after = line.strip("─- ").rpartition(name) if name else (line, "", "")
    return bool(found) and not after and (not before or before.rstrip()[-1:] in _AFTER_PLACE)


def _iterate_informative(text: str | None) -> Iterator[str]:
    lines = [_GO_PLACE.sub("", line.strip(), count=1) for line in (text or "").splitlines()]
    for at, line in enumerate(lines):
        if not _NOISE.match(line):
            end = at + 1 + (_MOST_CONTINUED if line.endswith(":") else 0)
            yield " ".join(" ".join(lines[at:end]).split())[:MAX_LENGTH]


def _find_first_line(text: str | None) -> str | None:
    for line in (text or "").splitlines():
        if line.strip():
            return line.strip()[:MAX_LENGTH]
    return None


MAX_FILES = 200_000
"""Number of repository files to look at; beyond it, places are not searched for."""

_EXTENSIONS = (
    "bats|c|cc|cjs|cpp|cs|cts|cxx|dart|ex|exs|feature|fs|go|groovy|h|hpp|java|js|jsx|kt|kts|m|mjs|mm|mts"
    "|php|pl|py|rb|robot|rs|scala|svelte|swift|t|ts|tsx|vb|vue"
)
_FRAME = re.compile(
    rf"""(?<![^\s"'<>|:,()])(?P<path>(?:[A-Za-z]:)?[^\s"'<>|:,()]{{1,400}}\.(?:{_EXTENSIONS}))"""
    r"""(?:"?,\ line\ |:line\ |:|\()(?P<line>[1-9][0-9]{0,6})\b(?!:[0-9]+\ \u203a)""",
    re.VERBOSE,
)
"""`path:LINE`, `path:line LINE` (.NET), `path(LINE` (MSBuild), `"path", line LINE` (Python).

Playwright's caption of a failure, `path:LINE:COLUMN` and its title, names the test's first
line only.
"""
_JVM_FRAME = re.compile(
    r"\bat (?:[\w.@-]{1,200}/)?(?P<package>(?:[\w$]{1,200}\.){0,50}?)[\w$]{1,200}\.[\w$<>-]{1,200}"
    r"\((?P<file>[\w$-]{1,200}\.(?:java|kt|scala|groovy)):(?P<line>[1-9][0-9]{0,6})\)"
)
"""Python writes the innermost frame last, all others first."""
_FOREIGN = re.compile(r"(?:^|/)(?:node_modules|site-packages|dist-packages|vendor)/|^/usr/|^node:")
_WORKSPACE = re.compile(
    r"^(?:/home/runner/work/[^/]+/[^/]+|/Users/runner/work/[^/]+/[^/]+|/__w/[^/]+/[^/]+"
    r"|/github/workspace|[A-Za-z]:/a/[^/]+/[^/]+)/"
)
"""Folders of the checkout on GitHub's runners and in their containers."""
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "target", "venv"})


class _Frame(NamedTuple):
    path: str
    """With forward slashes; may be absolute."""
    line: int | None


@dataclass(frozen=True)
class SourceFiles:
    """The files of the repository, listed when the first place is searched for."""

    root: Path

    @cached_property
    def _paths_by_name(self) -> dict[str, list[tuple[str, ...]]]:
        """The paths of files by their names, as parts from the name upwards."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for path in _list_files(self.root):
            parts = tuple(reversed(path.split("/")))
            found.setdefault(parts[0], []).append(parts)
        return found

    def find(self, path: str, hint: str = "") -> str | None:
        """Return the repository's path of a traced file; None if none or several fit.

        `hint` names folders of the file (a package), to choose between equal file names.
        """
        if _FOREIGN.search(path):
            return None
        if not self._paths_by_name:
            inside = _WORKSPACE.sub("", path)
            return inside if inside != path else None
        parts = tuple(reversed([part for part in path.split("/") if part not in ("", ".", "..")]))
        needed = 2 if path.startswith("/") or path[1:2] == ":" else min(2, len(parts))
        shared = {one: _count_shared(parts, one) for one in self._paths_by_name.get(parts[0], ())}
        fitting = [one for one, n in shared.items() if n >= min(needed, len(one))]
        folders = tuple(reversed(re.split(r"[./\\]", hint)))
        ranks = {one: (shared[one], _count_shared(folders, one[1:])) for one in fitting}
        best = [one for one in fitting if ranks[one] == max(ranks.values())]
        return "/".join(reversed(best[0])) if len(best) == 1 else None


def locate_failures(cases: Sequence[JUnitCase], root: Path) -> list[JUnitCase]:
    """Return failed cases with places in the repository at `root`, where they can be found."""
    files = SourceFiles(root)
    return [_locate(case, files) for case in cases]


def _locate(case: JUnitCase, files: SourceFiles) -> JUnitCase:
    if case.file is not None and case.line is not None:
        return _correct_file(case, files)
    for frame in _find_frames(f"{case.detail or ''}\n{case.message or ''}"):
        if (path := files.find(frame.path, case.classname)) is not None:
            return case._replace(file=path, line=frame.line)
    for candidate in _list_test_files(case):
        if (path := files.find(candidate)) is not None:
            return case._replace(file=path)
    return case


def _correct_file(case: JUnitCase, files: SourceFiles) -> JUnitCase:
    """Complete a file name that is relative to a subfolder, or absolute on another machine."""
    if case.file is None or (files.root / case.file).is_file():
        return case
    return case._replace(file=files.find(_normalize(case.file)) or case.file)


def _find_frames(text: str) -> Iterator[_Frame]:
    """Yield the frames of a trace, the innermost first."""
    if _PYTHON_TRACEBACK in text:
        return reversed([*_iterate_jvm_frames(text), *_iterate_frames(text)])
    text = find_core(text) or ""
    return iter([*_iterate_jvm_frames(text), *_iterate_frames(text)])


def _iterate_jvm_frames(text: str) -> Iterator[_Frame]:
    for match in _JVM_FRAME.finditer(text):
        folder = match["package"].replace(".", "/")
        yield _Frame(f"{folder}{match['file']}", int(match["line"]))


def _iterate_frames(text: str) -> Iterator[_Frame]:
    for match in _FRAME.finditer(text):
        yield _Frame(_normalize(match["path"]), int(match["line"]))


def _list_test_files(case: JUnitCase) -> Iterator[str]:
    """Yield the paths that a case without a usable trace may name as its file."""
    if case.file is not None:
        yield _normalize(case.file)
    if re.search(rf"\.(?:{_EXTENSIONS})$", case.classname):
        yield _normalize(case.classname)
    elif re.fullmatch(r"[\w.$]{3,400}", case.classname) and "." in case.classname:
        outer = case.classname.partition("$")[0].replace(".", "/")
        yield from (f"{outer}.{extension}" for extension in ("java", "kt", "scala", "py"))
        yield f"{outer.rpartition('/')[0]}.py"


def _normalize(path: str) -> str:
    path = path.replace("\\", "/")
    return re.sub("^/+", "/", path)


def _list_files(root: Path) -> list[str]:
    """List the files below a folder, except hidden and installed ones; none if too many."""
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in _SKIPPED_FOLDERS]
        relative = Path(folder).relative_to(root)
        found += [(relative / name).as_posix() for name in names]
        if len(found) > MAX_FILES:
            return []
    return found


def _count_shared(parts: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of equal parts from the start."""
    return next(
        (n for n, (a, b) in enumerate(zip(parts, others, strict=False)) if a != b),
        min(len(parts), len(others)),
    )
