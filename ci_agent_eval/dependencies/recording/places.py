"""The project's files, and the code that accesses a file or variable."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Literal

CodeOwner = Literal["project", "tooling", "stdlib", "installed", "generated", "outside"]
"""Whose code a file is. `tooling`: pytest and this package; `generated`: no file, such as that of
a dataclass's `__init__`; `outside`: neither in the repository nor installed."""

_TOOLS = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet"})
_WORKING_FOR_AGENTS = tuple(
    f"ci_agent_eval.{name}." for name in ("authoring", "engine", "model_traffic", "checks")
)
"""Packages that start programs and read files of the tested agent."""
_CACHES = frozenset({"linecache", "functools"})
"""Modules of the standard library that hide later accesses by a cache."""
_IMPORT_SYSTEM = "<frozen importlib"
_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
_IGNORED_FOLDERS = frozenset(
    {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules"}
)


Function = tuple[str, str]
"""A file relative to the root, and the qualified name of an outermost function; empty: of none."""

_MODULE = "<module>"


@dataclass(frozen=True, slots=True)
class Accessor:
    """The code that made an access."""

    function: Function | None = None
    """The nearest frame of the project; None: there is none."""
    module: str | None = None
    """File of the project's module whose body runs, while it is imported; None: none is."""
    tool: str | None = None
    """Module of pytest or of this package that made it without another package between."""
    is_indirect: bool = False
    """Whether an installed package made it for the project, and may have a cache."""
    is_import: bool = False
    """Whether the import system made it."""

    @property
    def is_housekeeping(self) -> bool:
        """Whether pytest or this package made it for itself, and not for the tested agent."""
        return self.tool is not None and not self.tool.startswith(_WORKING_FOR_AGENTS)


@dataclass(frozen=True, slots=True)
class Places:
    """The repository, and the folders in it that are not part of the project."""

    root: str
    """The repository's root, absolute and without symbolic links."""
    ignored: tuple[str, ...] = ()
    """Absolute folders that the run writes, such as the report folder, and environments."""
    started: float = 0.0
    """When the run began, in seconds since 1970: later temporary files are its own."""
    _prefix: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prefix", f"{self.root}{os.sep}")

    def find_relative(self, path: str) -> str | None:
        """Return a path of the project relative to the root, with `/`; None for other paths.

        `path` is absolute; symbolic links are kept.
        """
        if path == self.root:
            return "."
        if not path.startswith(self._prefix):
            return None
        relative = path[len(self._prefix) :].replace(os.sep, "/")
        parts = relative.split("/")
        if not _IGNORED_FOLDERS.isdisjoint(parts) or path.startswith(self.ignored):
            return None
        return relative

    def is_outside(self, path: str) -> bool:
        """Return whether a file outside of the repository is not the system's nor this run's."""
        if path.startswith((*_list_system_folders(), *_list_package_folders())):
            return False
        return not path.startswith(_list_temporary_folders()) or not self._is_new(path)

    def _is_new(self, path: str) -> bool:
        try:
            return Path(path).lstat().st_ctime >= self.started
        except OSError:
            return True

    def find_owner(self, filename: str) -> CodeOwner:
        """Return the owner of a code object's file."""
        return _find_owner(self, filename)

    def find_accessor(self, frame: FrameType | None) -> Accessor:
        """Return the code that made an access, from the frame that called the operation."""
        is_indirect = is_import = False
        while frame is not None:
            filename = frame.f_code.co_filename
            owner = _find_owner(self, filename)
            if owner == "project":
                function, module = self.find_function(frame.f_code), self.find_module(frame)
                return Accessor(function, module, None, is_indirect, is_import)
            name = str(frame.f_globals.get("__name__", ""))
            if owner == "tooling":
                tool = None if is_indirect else name
                return Accessor(None, None, tool, is_indirect, is_import)
            is_indirect = is_indirect or owner == "installed" or name in _CACHES
            is_import = is_import or filename.startswith(_IMPORT_SYSTEM)
            frame = frame.f_back
        return Accessor(is_indirect=True, is_import=is_import)

    def find_function(self, code: CodeType) -> Function | None:
        """Return the project's function of a code object; None for other code."""
        if _find_owner(self, code.co_filename) != "project":
            return None
        path = self.find_relative(code.co_filename)
        return None if path is None else (path, get_outermost_name(code.co_qualname))

    def find_module(self, frame: FrameType | None) -> str | None:
        """Return the file of the project's module whose body runs below a frame."""
        while frame is not None:
            if frame.f_code.co_name == _MODULE:
                function = self.find_function(frame.f_code)
                if function is not None:
                    return function[0]
            frame = frame.f_back
        return None


def get_outermost_name(qualname: str) -> str:
    """Return the outermost function of a qualified name; empty for a module or class body.

    `Desk.refund.<locals>.<lambda>` is `Desk.refund`.
    """
    name = qualname.partition(".<locals>")[0]
    return "" if "<" in name else name


@lru_cache(maxsize=20_000)
def _find_owner(places: Places, filename: str) -> CodeOwner:
    if filename.startswith("<") or not filename:
        return "generated"
    if filename.startswith(_PACKAGE):
        return "tooling"
    for folder in _list_package_folders():
        if filename.startswith(folder):
            name = filename[len(folder) :].partition(os.sep)[0].removesuffix(".py")
            return "tooling" if name in _TOOLS else "installed"
    if places.find_relative(filename) is not None:
        return "project"
    is_known = not filename.startswith(os.sep) or filename.startswith(places.ignored)
    return "stdlib" if is_known or not places.is_outside(filename) else "outside"


@lru_cache(maxsize=1)
def _list_package_folders() -> tuple[str, ...]:
    """Return the folders of installed packages, each with a final separator."""
    paths = sysconfig.get_paths()
    folders = [*site.getsitepackages(), site.getusersitepackages(), paths["purelib"]]
    return _with_separators([*folders, paths["platlib"]])


@lru_cache(maxsize=1)
def _list_system_folders() -> tuple[str, ...]:
    """Return the folders whose files are no dependencies: Python's and the system's."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_paths()["stdlib"]]
    system = ["/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/opt/hostedtoolcache"]
    return _with_separators([*folders, *system])


@lru_cache(maxsize=1)
def _list_temporary_folders() -> tuple[str, ...]:
    return _with_separators([tempfile.gettempdir()])


def _with_separators(folders: Iterable[str]) -> tuple[str, ...]:
    found = {name for folder in folders for name in (folder, os.path.realpath(folder))}
    return tuple(f"{name}{os.sep}" for name in sorted(found) if name != os.sep)
