"""Search for the tests that import changed files, directly or through other modules.

Import statements are found by a pattern, and nothing is executed: parsing every file with `ast`
takes ten times as long. Why no library: docs/decisions/0068-affected-tests.md.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename, dirname, join

from ci_agent_eval.steering.affected.deadline import Deadline

TEST_PATTERNS = ("test_*.py", "*_test.py")
"""pytest's default `python_files`."""

_MAX_FILE_BYTES = 1_000_000
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.+(?:\w[\w.]*)?|\w[\w.]*)[ \t]*import[ \t]*"
    r"(\((?:[^()#]++|#[^\n]*+)*+\)|[^\n#;\\]*(?:\\\r?\n[^\n#;\\]*)*)"
    r"|import[ \t]+([^\n#;\\]+(?:\\\r?\n[^\n#;\\]*)*))",
    re.MULTILINE,
)
"""An import statement; one in a text counts as well, which adds a test at most.

Matching takes linear time for any text: no two parts that repeat accept the same character.
"""
_MAX_NAME_CHARACTERS = 500
"""Maximum length of a module's name; the time to resolve it is quadratic in its length."""
_COMMENT = re.compile(r"#.*")
_SOURCE_FOLDERS = frozenset({"src", "lib", "python"})
"""Folders that are usually on `sys.path`, for packages without `__init__.py`."""


def is_test_file(path: str) -> bool:
    """Return whether pytest collects a file by default."""
    return any(fnmatchcase(basename(path), pattern) for pattern in TEST_PATTERNS)


def find_affected_tests(
    top: Path, files: Sequence[str], changed: Collection[str], deadline: Deadline
) -> tuple[str, ...]:
    """Return the test files among `files` that the changed files affect, sorted.

    All paths are relative to `top`. If no test imports a changed file, tests count whose
    `conftest.py` does. Raises TimeoutError.
    """
    reached = _find_importers(top, files, changed, deadline)
    tests = {path for path in reached if is_test_file(path)}
    tests |= _list_tests_below(files, filter(_is_conftest, changed))
    if not tests:
        tests = _list_tests_below(files, filter(_is_conftest, reached))
    return tuple(sorted(tests & set(files)))


def _is_conftest(path: str) -> bool:
    return basename(path) == "conftest.py"


def _list_tests_below(files: Iterable[str], conftests: Iterable[str]) -> set[str]:
    folders = tuple(f"{folder}/" if (folder := dirname(path)) else "" for path in conftests)
    return {path for path in files if is_test_file(path) and path.startswith(folders)}


class _ImportResolver:
    """Finds the files of imported names."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        packages = {dirname(path) for path in self._paths if basename(path) == "__init__.py"}
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            for name in _list_module_names(path, packages):
                self._by_name.setdefault(name, []).append(path)

    def resolve_imports(self, path: str, source: str, deadline: Deadline) -> Iterator[str]:
        """Yield the files that the import statements of a file name. Raises TimeoutError."""
        for match in _IMPORT.finditer(source):
            module, members, modules = match.groups()
            for name in _split_names(modules if module is None else members):
                deadline.require_time()
                if len(module or "") + len(name) > _MAX_NAME_CHARACTERS:
                    continue
                if module is None:
                    yield from self._resolve_name(name)
                elif module.startswith("."):
                    yield from self._resolve_relative(path, module, name)
                else:
                    yield from self._resolve_name(f"{module}.{name}")

    def _resolve_relative(self, path: str, module: str, name: str) -> Sequence[str]:
        """Return the file of a relative import's submodule, or else its module's."""
        rest = module.lstrip(".")
        folder = dirname(path)
        for _ in range(len(module) - len(rest) - 1):
            folder = dirname(folder)
        found = join(folder, *rest.split("."))
        candidates = (
            f"{join(found, name)}.py",
            join(found, name, "__init__.py"),
            f"{found}.py",
            join(found, "__init__.py"),
        )
        return [candidate for candidate in candidates if candidate in self._paths][:1]

    def _resolve_name(self, name: str) -> Sequence[str]:
        """Return the files of a dotted name's longest part that is a module."""
        while name:
            if name in self._by_name:
                return self._by_name[name]
            name = name.rpartition(".")[0]
        return ()


def _find_importers(
    top: Path, files: Sequence[str], changed: Collection[str], deadline: Deadline
) -> set[str]:
    """Return the files that import a changed file, at any distance, and the changed files."""
    # Deleted files are still imported by the tests that now fail.
    resolver = _ImportResolver({*files, *changed})
    importers: dict[str, set[str]] = {}
    for path in files:
        deadline.require_time()
        for imported in resolver.resolve_imports(path, _read_source(top / path), deadline):
            importers.setdefault(imported, set()).add(path)
    reached = set(changed)
    pending = list(reached)
    while pending:
        found = importers.get(pending.pop(), set()) - reached
        reached |= found
        pending.extend(found)
    return reached


def _split_names(text: str) -> Iterator[str]:
    """Yield the names of an import statement, without comments and `as` names."""
    for part in _COMMENT.sub("", text).strip("() \t\r\n").split(","):
        words = part.replace("\\", " ").split()
        yield from words[:1]


def _list_module_names(path: str, packages: Collection[str]) -> Iterator[str]:
    """Yield the names by which a file may be imported, one for each likely root."""
    parts = path.removesuffix(".py").split("/")
    root = len(parts) - 1
    while root and "/".join(parts[:root]) in packages:
        root -= 1
    roots = {0, root, *(at + 1 for at, part in enumerate(parts[:-1]) if part in _SOURCE_FOLDERS)}
    if parts[-1] == "__init__":
        parts.pop()
    for start in sorted(roots):
        if parts[start:]:
            yield ".".join(parts[start:])


def _read_source(path: Path) -> str:
    """Return a file's text; empty if it is no regular file, too large or unreadable."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return ""
        return path.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
