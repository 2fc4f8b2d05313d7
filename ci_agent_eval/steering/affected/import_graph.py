"""Search for the tests that import changed files, directly or through other modules.

Imports are read with `ast` and never executed. Grimp was tried first; it builds the graph of
installed packages of its own interpreter, while test files are often no package, and the hook
runs in another environment than the suite (docs/decisions/0068-affected-tests.md).
"""

from __future__ import annotations

import ast
import os
import stat
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename, dirname, join

from ci_agent_eval.steering.affected.deadline import Deadline

TEST_PATTERNS = ("test_*.py", "*_test.py")
"""pytest's default `python_files`."""

_MAX_FILE_BYTES = 1_000_000
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
    reached = ImportGraph(top, files, changed, deadline).find_importers(changed)
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


class ImportGraph:
    """The imports between Python files; a file is parsed only if it may matter."""

    def __init__(
        self, top: Path, files: Sequence[str], changed: Iterable[str], deadline: Deadline
    ) -> None:
        self._top = top
        self._files = files
        self._deadline = deadline
        # Deleted files are still imported by the tests that now fail.
        known = sorted({*files, *changed})
        self._paths = frozenset(known)
        packages = {dirname(path) for path in known if basename(path) == "__init__.py"}
        self._by_name: dict[str, list[str]] = {}
        for path in known:
            for name in _list_module_names(path, packages):
                self._by_name.setdefault(name, []).append(path)
        self._sources: dict[str, bytes] = {}
        self._imports: dict[str, frozenset[str]] = {}

    def find_importers(self, changed: Iterable[str]) -> set[str]:
        """Return the files that import one of `changed`, at any distance, and these themselves.

        Raises TimeoutError.
        """
        reached = set(changed)
        pending = set(reached)
        while pending:
            words = {_get_last_name(path).encode() for path in pending}
            folders = tuple(f"{dirname(p)}/" for p in pending if basename(p) == "__init__.py")
            found = {
                path
                for path in self._files
                if path not in reached
                and (path.startswith(folders) or self._contains_any(path, words))
                and not pending.isdisjoint(self._get_imports(path))
            }
            reached |= found
            pending = found
        return reached

    def _contains_any(self, path: str, words: Collection[bytes]) -> bool:
        """Return whether a file contains a word, which its import would need."""
        self._deadline.require_time()
        if path not in self._sources:
            self._sources[path] = _read_source(self._top / path)
        source = self._sources[path]
        return any(word in source for word in words)

    def _get_imports(self, path: str) -> frozenset[str]:
        if path not in self._imports:
            self._deadline.require_time()
            source = self._sources.get(path) or _read_source(self._top / path)
            self._imports[path] = frozenset(self._resolve_imports(path, source))
        return self._imports[path]

    def _resolve_imports(self, path: str, source: bytes) -> Iterator[str]:
        for node in ast.walk(_parse_source(source)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._resolve_name(alias.name)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield from self._resolve_member(path, node, alias.name)

    def _resolve_member(self, path: str, node: ast.ImportFrom, name: str) -> Iterator[str]:
        """Yield the file of `from module import name`: the submodule's, or else the module's."""
        if not node.level:
            yield from self._resolve_name(f"{node.module}.{name}")
            return
        folder = dirname(path)
        for _ in range(node.level - 1):
            folder = dirname(folder)
        module = join(folder, *(node.module or "").split("."))
        module = module.rstrip("/")
        candidates = (
            f"{join(module, name)}.py",
            join(module, name, "__init__.py"),
            f"{module}.py",
            join(module, "__init__.py"),
        )
        yield from [path for path in candidates if path in self._paths][:1]

    def _resolve_name(self, name: str) -> Sequence[str]:
        """Return the files of a dotted name's longest part that is a module."""
        while name:
            if name in self._by_name:
                return self._by_name[name]
            name = name.rpartition(".")[0]
        return ()


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


def _get_last_name(path: str) -> str:
    """Return the last part of a module's name."""
    name = basename(path).removesuffix(".py")
    return basename(dirname(path)) if name == "__init__" else name


def _read_source(path: Path) -> bytes:
    """Return a file's content; empty if it is no regular file, too large or unreadable."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return b""
        return path.read_bytes()
    except (OSError, ValueError):
        return b""


def _parse_source(source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in the project's texts
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
