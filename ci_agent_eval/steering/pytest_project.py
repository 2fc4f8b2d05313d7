"""Search for a folder's pytest project: its root and `testpaths`.

Follows https://docs.pytest.org/en/stable/reference/customize.html (rootdir and configuration file).
A file that cannot be read counts as missing: steering lets calls through when it is unsure.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 - a hook needs the parsers for few of the commands it sees
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_agent_eval.steering.policy.model import ProjectFinder, PytestProject
from ci_agent_eval.steering.policy.pytest_arguments import normalize_path

_TABLES: Mapping[str, tuple[str, ...]] = {
    "pytest.toml": ("pytest",),
    ".pytest.toml": ("pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "pyproject.toml": ("tool", "pytest"),
    "tox.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
}
"""The table of pytest's options by file, in pytest's order."""
_ROOT_MARKERS = ("setup.py", "pyproject.toml", ".git")
"""Files that mark the root of a project without a configuration of pytest."""


def build_project_finder(base: Path) -> ProjectFinder:
    """Build a finder of the projects of folders, which are relative to `base` or absolute."""
    return lambda folder: find_pytest_project(base / folder)


def find_pytest_project(folder: Path) -> PytestProject | None:
    """Return the project of a folder; None if there is no such folder."""
    try:
        folder = folder.resolve()
        if not folder.is_dir():
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    candidates = (folder, *folder.parents)
    for root in candidates:
        options = _read_options(root)
        if options is not None:
            # pytest applies `testpaths` only in its root.
            testpaths = _split_paths(options.get("testpaths")) if root == folder else ()
            return _build_project(folder, root, testpaths)
    markers = (root for root in candidates if any((root / n).exists() for n in _ROOT_MARKERS))
    return _build_project(folder, next(markers, folder), ())


def _build_project(folder: Path, root: Path, testpaths: tuple[str, ...]) -> PytestProject:
    return PytestProject(
        normalize_path(folder.as_posix()),
        normalize_path(root.as_posix()),
        tuple(normalize_path((root / each).as_posix()) for each in testpaths),
    )


def _read_options(folder: Path) -> Mapping[str, Any] | None:
    """Return pytest's options of a folder's configuration; None if it has none."""
    for name, keys in _TABLES.items():
        path = folder / name
        table: Any = _parse_file(path) if path.is_file() else None
        for key in keys:
            table = table.get(key) if isinstance(table, Mapping) else None
        if isinstance(table, Mapping):
            nested = table.get("ini_options")
            return {**table, **nested} if isinstance(nested, Mapping) else table
        if "pytest." in name and path.is_file():  # it counts also without a table
            return {}
    return None


def _parse_file(path: Path) -> Mapping[str, Any]:
    import tomllib
    from configparser import Error, RawConfigParser

    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        parser = RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
    except (OSError, ValueError, Error):
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def _split_paths(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(each for each in value if isinstance(each, str))
    try:
        return tuple(shlex.split(value)) if isinstance(value, str) else ()
    except ValueError:
        return ()
