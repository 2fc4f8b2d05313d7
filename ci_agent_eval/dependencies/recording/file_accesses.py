"""Files, folders, processes and hosts that a process uses: audit events and wrapped functions.

`os.stat` and its like raise no audit event, and `multiprocessing` none for its children, so these
are wrapped. An audit hook cannot be removed; it returns at once when nothing is watched.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import source_from_cache
from types import FrameType
from typing import Any, ClassVar

from ci_agent_eval.dependencies.recording.accesses import Access, ProcessAccesses
from ci_agent_eval.dependencies.recording.functions import FindOwner
from ci_agent_eval.dependencies.recording.places import Places

_LOOKUPS = ("stat", "lstat", "access", "readlink")
_CHILD_EVENTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}
    | {"os.forkpty", "pty.spawn"}
)
_EVENTS = (
    _CHILD_EVENTS
    | {"open", "os.listdir", "os.scandir", "sqlite3.connect"}
    | {
        "socket.getaddrinfo",
        "ctypes.dlopen",
    }
)
_PROBES = frozenset({"platform", "ctypes.util", "uuid", "multiprocessing.resource_tracker"})
"""Modules of the standard library that start programs to learn about the system."""
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_LOCAL_HOSTS = frozenset({"localhost", "", "0.0.0.0", "::", "::1"})  # noqa: S104 - compared, not bound
_CODE = (".py", ".pyi")
_BYTECODE = ".pyc"
_SUPPORTING = (
    os.supports_dir_fd,
    os.supports_effective_ids,
    os.supports_fd,
    os.supports_follow_symlinks,
)


class FileWatch:
    """Adds the accesses of a process to the episode that makes them."""

    _active: ClassVar[FileWatch | None] = None
    _has_hook: ClassVar[bool] = False

    def __init__(self, places: Places, process: ProcessAccesses, find_owner: FindOwner) -> None:
        self._places = places
        self._process = process
        self._find_owner = find_owner
        self._restore: list[Callable[[], None]] = []
        self._thread = threading.local()
        self.written: set[str] = set()
        """Paths, relative to the root, that were opened for writing."""

    def start(self) -> None:
        """Start to watch; there is one watch in a process."""
        FileWatch._active = self
        if not FileWatch._has_hook:
            sys.addaudithook(_handle_event)
            FileWatch._has_hook = True
        for name in _LOOKUPS:
            self._wrap(os, name, self._watch_lookup)
        self._wrap(multiprocessing.process.BaseProcess, "start", self._watch_process)

    def stop(self) -> None:
        """Stop to watch, and restore the wrapped functions."""
        FileWatch._active = None
        for restore in self._restore:
            restore()
        self._restore.clear()

    def _wrap(
        self, holder: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        original = getattr(holder, name)
        wrapped = functools.wraps(original)(wrap(original))
        setattr(holder, name, wrapped)
        # `shutil` asks these sets whether a function takes an argument.
        supporting = [found for found in _SUPPORTING if original in found]
        for found in supporting:
            found.add(wrapped)

        def restore() -> None:
            if getattr(holder, name) is wrapped:
                setattr(holder, name, original)
            for found in supporting:
                found.discard(wrapped)

        self._restore.append(restore)

    def _watch_lookup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def look_up(path: Any, *args: Any, **kwargs: Any) -> Any:
            kind = "absent"
            try:
                found = original(path, *args, **kwargs)
                is_there = found is not False or os.path.lexists(path)  # `os.access` has denied it
                kind = "file" if is_there else "absent"
                return found
            finally:
                if kwargs.get("dir_fd") is None:
                    self._observe(self._add_path, path, kind, sys._getframe(1))  # noqa: SLF001 - the caller

        return look_up

    def _watch_process(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(process: Any) -> Any:
            self._observe(self._add_child, "multiprocessing", sys._getframe(1))  # noqa: SLF001 - the caller
            return original(process)

        return start

    def _observe(self, add: Callable[..., None], *args: Any) -> None:
        """Add an access; looking at it makes accesses, which are none of the tested code's."""
        if getattr(self._thread, "is_busy", False):
            return
        self._thread.is_busy = True
        try:
            with suppress(Exception):  # an error here would fail the operation of the tested code
                add(*args)
        finally:
            self._thread.is_busy = False

    def handle_event(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        """Record the access of an audit event; called in the thread that raises it."""
        if event == "open":
            self._observe(self._add_opened, *args, frame)
        elif event in {"os.listdir", "os.scandir"}:
            folder = "." if args[0] is None else args[0]
            self._observe(self._add_path, folder, "folder", frame)
        elif event == "sqlite3.connect":
            self._observe(self._add_database, args[0], frame)
        elif event in _CHILD_EVENTS:
            self._observe(self._add_child, _describe_child(event, args), frame)
        elif event == "socket.getaddrinfo":
            self._observe(self._add_host, args[0])
        elif event == "ctypes.dlopen":
            self._observe(self._add_library, args[0], frame)

    def _add_opened(self, path: Any, mode: Any, flags: Any, frame: FrameType) -> None:
        if mode is None:
            is_written = bool((flags or 0) & _WRITE_FLAGS)
        else:
            is_written = not {"w", "a", "x", "+"}.isdisjoint(mode)
        self._add_path(path, "written" if is_written else "file", frame)

    def _add_database(self, database: Any, frame: FrameType) -> None:
        text = os.fsdecode(database)
        path = text.removeprefix("file:").partition("?")[0] if text.startswith("file:") else text
        if path and path != ":memory:":
            self._add_path(path, "file" if os.path.exists(path) else "absent", frame)

    def _add_path(self, path: Any, kind: str, frame: FrameType) -> None:
        if isinstance(path, int):
            return
        text = os.fsdecode(path)
        absolute = _find_source(os.path.normpath(os.path.join(os.getcwd(), text)))
        relative = self._places.find_relative(absolute)
        if relative is None:
            if kind == "file" and self._places.is_outside(absolute):
                self._add_outside(absolute, "outside_file", frame)
        elif kind == "written":
            self.written.add(relative)
        elif relative not in self.written:
            self._add_inside(absolute, (kind, relative), frame)

    def _add_inside(self, absolute: str, access: Access, frame: FrameType) -> None:
        accessor = self._places.find_accessor(frame)
        if accessor.is_housekeeping or (accessor.is_import and access[1].endswith(_CODE)):
            return  # the code itself is a dependency, where it runs
        if access[0] == "file" and not os.path.isfile(absolute):
            return  # that a folder exists shows in the files that are in it
        owner = self._find_owner()
        links = _list_links(self._places.root, absolute)
        if not links:
            self._process.add(owner, access, accessor)
            return
        for link in links:
            relative = self._places.find_relative(link)
            if relative is not None:
                self._process.add(owner, ("file", relative), accessor)
        target = os.path.realpath(absolute)
        relative = self._places.find_relative(target)
        if relative is None:
            self._add_outside(target, "symlink", frame)
        else:
            self._process.add(owner, (access[0], relative), accessor)

    def _add_outside(self, path: str, cause: str, frame: FrameType) -> None:
        accessor = self._places.find_accessor(frame)
        if accessor.function is not None and self._places.is_outside(path):
            self._process.add(self._find_owner(), (cause, path), accessor)

    def _add_child(self, detail: str, frame: FrameType) -> None:
        accessor = self._places.find_accessor(frame)
        if not accessor.is_housekeeping and _find_starter(frame) not in _PROBES:
            self._process.add(self._find_owner(), ("child_process", detail), accessor)

    def _add_host(self, host: Any) -> None:
        name = os.fsdecode(host or "").lower()
        if name not in _LOCAL_HOSTS and not name.startswith("127."):
            self._find_owner().accesses.add(("host", name))

    def _add_library(self, name: Any, frame: FrameType) -> None:
        """Add a library that the project loads; importing ctypes loads one, too."""
        accessor = self._places.find_accessor(frame)
        path = os.fsdecode(name or "")
        inside = self._places.find_relative(os.path.realpath(path)) if path else None
        is_own = accessor.function is not None and not accessor.is_indirect
        if inside is not None or (is_own and not accessor.is_import):
            detail = inside or path or "of this process"
            self._process.add(self._find_owner(), ("native_code", detail), accessor)


def _find_source(path: str) -> str:
    """Return the source file of a cached bytecode file, and other paths as they are."""
    if not path.endswith(_BYTECODE):
        return path
    try:
        return source_from_cache(path)
    except (ValueError, NotImplementedError):  # bytecode beside its source, or none is cached
        return path


def _find_starter(frame: FrameType | None) -> str:
    """Return the module that started a program, by the functions of `subprocess` or not."""
    while frame is not None and frame.f_globals.get("__name__") == "subprocess":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _list_links(root: str, path: str) -> list[str]:
    """Return the parts of a path below the root that are symbolic links."""
    found, current = [], path
    while len(current) > len(root):
        if os.path.islink(current):
            found.append(current)
        current = os.path.dirname(current)
    return found


def _describe_child(event: str, args: tuple[Any, ...]) -> str:
    """Return the name of a started program, without its arguments, which may hold secrets."""
    program = args[0] if args and isinstance(args[0], str | bytes) else event
    words = os.fsdecode(program).split()
    return os.path.basename(words[0]) if words else event


def _handle_event(event: str, args: tuple[Any, ...]) -> None:
    watch = FileWatch._active  # noqa: SLF001 - of this module
    if watch is not None and event in _EVENTS:  # `sys._getframe` raises an event, too
        watch.handle_event(event, args, sys._getframe(1))  # noqa: SLF001 - the frame that raised it
