"""Start Python children by forking a process that has imported their modules.

Importing pytest, our plugin and the modules of a command, and building the models of the results,
takes longer than most children work.
`use_fork_server` lets `subprocess.Popen` fork such a process instead of starting an interpreter,
for `python -m pytest`, `python -m ci_agent_eval` and the workers of xdist. The child has its own
folder, environment, streams, signals, process group and exit code, and it is a child of the
process that asked for it, so `Popen` waits for it and signals it as for any other. It has its own
server, for the children that it starts.

A new interpreter starts where that matters (see `_describe_child`), and everywhere with
COLD_CHILDREN=1, in the environment of the tests or of one child. With COLD_CHILDREN=first it
starts for the first child of each command in each test function: an import that a command forgets
is found there, and the other children, and those of forked ones, are forked. WARM_FOLDERS names folders of PYTHONPATH that
hold no plugin and shadow nothing. `multiprocessing`'s fork server
does not fit: its children belong to the server, and have no command line, folder or environment.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import importlib.machinery
import inspect
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

COLD_CHILDREN = "COLD_CHILDREN"

MODULES = ("pytest", "ci_agent_eval")
"""What `python -m` may name."""

XDIST_WORKER = "import sys;exec(eval(sys.stdin.readline()))"
"""What execnet starts an interpreter with."""

PRELOADED = (
    "ci_agent_eval.app.action",
    "ci_agent_eval.app.cli",
    "ci_agent_eval.app.fork_handoff",
    "ci_agent_eval.app.pipeline",
    "ci_agent_eval.app.progress",
    "ci_agent_eval.app.report_publication",
    "ci_agent_eval.engine.traffic",
    "ci_agent_eval.model_traffic.hooks",
    "junitparser.xunit2",
    "numpy",
    "pdb",
    "xdist.dsession",
    "xdist.remote",
)
PRELOADED_PACKAGES = (
    *("analysis", "authoring", "config", "contract", "dependencies", "pytest_plugin"),
    *("recording", "redaction", "render", "results", "runner", "storage"),
)
"""Packages of ours with all of their modules, which import no slow library."""

READ_AT_START = ("COV", "LANG", "LC_", "LD_", "MALLOC", "OPENBLAS", "PYDANTIC", "PYTHON", "TZ")
"""Beginnings of the variables that only a new interpreter takes into account."""

PLUGINS = ("-p", "no:randomly", "-p", "no:hypothesispytest")
"""Plugins of these tests that inner runs of pytest are kept from loading."""

_IMPORTABLE = tuple(importlib.machinery.all_suffixes())
_ROOT = Path(__file__).parents[1]
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LENGTH = struct.Struct("!I")


class _Child(NamedTuple):
    """What a new process takes over from the call that starts it."""

    words: list[str]
    """The command line."""
    cwd: str
    environ: dict[str, str]
    process_group: int
    new_session: bool
    ignored: list[int]
    blocked: list[int]
    has_death_signal: bool
    """Whether it is to end with its parent."""


class _Server:
    """The server of this process, started when first needed, and what it has imported."""

    def __init__(
        self, connection: socket.socket, imported: frozenset[str], environ: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self.imported = imported
        """Names of the top-level modules."""
        self.read_at_start = _select_read_at_start(environ)

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked from the server's owner."""
        return self._owner == os.getpid()

    def start(self, child: _Child, streams: Sequence[int]) -> int:
        """Return the process id of a new child of this process."""
        request = json.dumps(child).encode()
        with self._lock:
            # The process that forks the child ends at once: whoever takes its orphans over is us.
            _set_subreaper(True)
            try:
                socket.send_fds(self._connection, [_LENGTH.pack(len(request))], streams)
                self._connection.sendall(request)
                return _read_number(self._connection)
            except BaseException:
                _servers.clear()  # the next answer could be the one that was not waited for
                raise
            finally:
                _set_subreaper(False)


def _start_server() -> _Server:
    ours, theirs = socket.socketpair()
    outer = ("PYTEST_", "PYTHONPATH")
    environ = {key: value for key, value in _environ.items() if not key.startswith(outer)}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd="/",
            # Only a process without threads can be forked safely: OpenBLAS, which is numpy's,
            # starts some.
            env={**environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    atexit.register(_stop_server, process, ours)
    return _Server(ours, frozenset(json.loads(_read(ours, _read_number(ours)))), _environ)


def _stop_server(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    connection.close()
    process.wait()


def use_fork_server() -> None:
    """Let `subprocess.Popen` fork the children that need no new interpreter."""
    if getattr(subprocess.Popen._execute_child, "forks", False):
        return  # a forked child that runs tests of this repository
    _environ.update(os.environ)
    measured = any(name.startswith("COV") for name in os.environ)
    if sys.platform == "linux" and not measured and os.environ.get(COLD_CHILDREN) != "1":
        subprocess.Popen._execute_child = _execute_child


_environ: dict[str, str] = {}
"""The environment of this process before a test changed it, which the server starts with."""

_servers: list[_Server] = []
"""The one of this process, once it is needed."""

_start_interpreter = subprocess.Popen._execute_child
_SIGNATURE = inspect.signature(_start_interpreter)


def _execute_child(process: subprocess.Popen[Any], *arguments: Any) -> None:
    """Do what `Popen._execute_child` does."""
    call = _SIGNATURE.bind(process, *arguments).arguments
    words = _to_words(call["args"])
    if not _find_command(words):
        _start_interpreter(process, *arguments)
        return
    if not _servers:
        _servers.append(_start_server())
    server = _servers[0]
    pipes = (call["p2cread"], call["c2pwrite"], call["errwrite"])
    streams = [number if pipe == -1 else pipe for number, pipe in enumerate(pipes)]
    child = _describe_child(words, call, streams, server)
    if child is None:
        _start_interpreter(process, *arguments)
        return
    process.pid = server.start(child, streams)
    process._child_created = True
    others = (call["p2cwrite"], call["c2pread"], call["errread"])
    process._close_pipe_fds(pipes[0], others[0], others[1], pipes[1], others[2], pipes[2])


_execute_child.forks = True


def _to_words(args: Any) -> list[str]:
    """Return the command line, empty if it is not a list of text."""
    if isinstance(args, str | bytes | os.PathLike):
        return []
    words = [os.fspath(word) for word in args]
    return words if all(isinstance(word, str) for word in words) else []


def _find_command(words: Sequence[str]) -> list[str]:
    """Return `-m` and a module, or `-c` and code, with the arguments; empty if unsupported."""
    match words:
        case [sys.executable, "-u", *rest] | [sys.executable, *rest]:
            pass
        case _:
            return []
    match rest:
        case ["-m", module, *_] if module in MODULES:
            return rest
        case [word, *arguments] if word.startswith("-m") and word[2:] in MODULES:
            return ["-m", word[2:], *arguments]
        case ["-c", code] if code == XDIST_WORKER:
            return rest
    return []


def _describe_child(
    words: list[str], call: Mapping[str, Any], streams: Sequence[int], server: _Server
) -> _Child | None:
    """Return the child to fork, or None where only a new interpreter will do.

    That is after a change of a variable that is read at an interpreter's start, if the child
    could import another module in the place of an imported one, and for rare arguments of Popen.
    """
    environ = dict(os.environ if call["env"] is None else call["env"])
    cwd = str(Path(call["cwd"] or "").absolute())
    has_death_signal = _asks_for_death_signal(call["preexec_fn"])
    before = None if has_death_signal else call["preexec_fn"]
    rare = (call["executable"], before, call["pass_fds"], call["shell"])
    plain = call["close_fds"] and call["restore_signals"]
    users = all(call[name] in (None, -1) for name in ("gid", "gids", "uid", "umask"))
    text = all(isinstance(part, str) for pair in environ.items() for part in pair)
    if (
        any(rare)
        or not (plain and users and text and server.is_ours)
        or _starts_cold(words, environ)
        or _select_read_at_start(environ) != server.read_at_start
        or not Path(cwd).is_dir()
        or any(map(os.isatty, streams))
        or _is_shadowed(server.imported, [cwd, *_select_folders(environ, cwd)])
    ):
        return None
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return _Child(
        words,
        cwd,
        environ,
        call["process_group"],
        bool(call["start_new_session"]),
        [number for number, handler in handlers.items() if handler == signal.SIG_IGN],
        list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        has_death_signal,
    )


def _asks_for_death_signal(function: Callable[[], None] | None) -> bool:
    """Say whether a function for the new process is the one with which suites are started."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return name == "ci_agent_eval.runner.process._build_death_signal.<locals>.<lambda>"


_started: set[tuple[str, ...]] = set()
"""The test functions with the commands that they have started."""


def _starts_cold(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Say whether a child starts a new interpreter because of COLD_CHILDREN."""
    mode = environ.get(COLD_CHILDREN)
    if mode != "first":
        return mode is not None
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0]
    _, name, *arguments = _find_command(words)
    command = (test, name, *(arguments[:1] if name == "ci_agent_eval" else ()))
    is_first = bool(test) and command not in _started  # a child of a child has no test
    _started.add(command)
    return is_first


def _select_read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in environ.items()
        if key.startswith(READ_AT_START) and key != "PYTHONPATH"
    }


def _split_path(environ: Mapping[str, str], cwd: str) -> list[str]:
    """Return the absolute folders of PYTHONPATH."""
    folders = environ.get("PYTHONPATH", "")
    return [str(Path(cwd, folder)) for folder in folders.split(os.pathsep)] if folders else []


def _select_folders(environ: Mapping[str, str], cwd: str) -> list[str]:
    """Return the folders of PYTHONPATH that may hold more than what is known to be harmless."""
    harmless = environ.get("WARM_FOLDERS", "").split(os.pathsep)
    return [folder for folder in _split_path(environ, cwd) if folder not in harmless]


def _is_shadowed(imported: frozenset[str], folders: Sequence[str]) -> bool:
    """Say whether a folder, other than this repository, holds a package or an imported name."""
    others = [Path(folder) for folder in folders if Path(folder) != _ROOT]
    names = [path.name for folder in others if folder.is_dir() for path in folder.iterdir()]
    return any(_may_replace(name, imported) or name.endswith("-info") for name in names)


def _may_replace(name: str, imported: frozenset[str]) -> bool:
    """Say whether a file or folder could be imported in the place of an imported module."""
    stem, dot, _ = name.partition(".")
    return stem in imported and (not dot or name.endswith(_IMPORTABLE))


def _set_subreaper(value: bool) -> None:
    if ctypes.CDLL(None).prctl(_SUBREAPER, int(value), 0, 0, 0) != 0:
        raise OSError("this process cannot take over orphans")


def _read(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            raise OSError("the fork server has ended")
        received += part
    return received


def _read_number(connection: socket.socket) -> int:
    return int(_LENGTH.unpack(_read(connection, _LENGTH.size))[0])


# Only the server and its children run what follows.


class _Handover(NamedTuple):
    """Files of a new process, until it is a child of the requester."""

    streams: list[int]
    pid: int
    """Where it writes its process id, once it can receive signals."""
    started: int
    """Which ends once the requester is its parent."""

    def close(self) -> None:
        for file in (*self.streams, self.pid, self.started):
            os.close(file)


def _serve(connection: socket.socket) -> tuple[_Child, _Handover]:
    """Fork for each request until the requester ends; only the new processes return."""
    while True:
        header, streams, *_ = socket.recv_fds(connection, _LENGTH.size, 3)
        if not header:
            os._exit(0)
        child = _Child(*json.loads(_read(connection, *_LENGTH.unpack(header))))
        told_pid, pid = os.pipe()
        started, start = os.pipe()
        handover = _Handover(streams, pid, started)
        if (between := os.fork()) == 0:
            if os.fork() != 0:
                os._exit(0)
            os.close(told_pid)
            os.close(start)
            return child, handover
        handover.close()
        answer = os.read(told_pid, _LENGTH.size)
        if not answer:  # the new process ended in an error, which it has shown
            os._exit(1)
        os.waitpid(between, 0)
        os.close(told_pid)
        os.close(start)
        connection.sendall(answer)


def _join_group(child: _Child) -> None:
    if child.new_session:
        os.setsid()
    if child.process_group != -1:
        os.setpgid(0, child.process_group)


def _become(child: _Child, handover: _Handover) -> None:
    """Take over what a new process gets from its parent."""
    os.chdir(child.cwd)
    os.environ.clear()
    os.environ.update(child.environ)
    for number, stream in enumerate(handover.streams):
        os.dup2(stream, number)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        ignored = number in child.ignored or number in (signal.SIGPIPE, signal.SIGXFSZ)
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    if signal.SIGINT not in child.ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, child.blocked)
    os.write(handover.pid, _LENGTH.pack(os.getpid()))
    os.read(handover.started, 1)
    handover.close()
    if child.has_death_signal:
        from ci_agent_eval.runner.process import _build_death_signal

        _build_death_signal()()


def _run(words: list[str], folders: list[str]) -> None:
    """Do what the interpreter does with this command line."""
    option, name, *arguments = _find_command(words)
    sys.orig_argv = words
    if words[1] == "-u":
        sys.stdin.reconfigure(write_through=True)  # as `python -u` does, to no effect
        sys.stdout = sys.__stdout__ = _open_unbuffered(sys.stdout)
        sys.stderr = sys.__stderr__ = _open_unbuffered(sys.stderr)
    sys.path[:0] = [str(Path.cwd()) if option == "-m" else "", *folders]
    if "xdist.workermanage" in sys.modules:  # it has kept the path of its import, for its workers
        sys.modules["xdist.workermanage"]._sys_path = list(sys.path)
    importlib.invalidate_caches()
    main = sys.modules["__main__"] = ModuleType("__main__")
    if "__mp_main__" in sys.modules:  # as multiprocessing names it
        sys.modules["__mp_main__"] = main
    if option == "-m":
        sys.argv = [name, *arguments]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [option, *arguments]
        exec(name, vars(main))


def _open_unbuffered(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = io.FileIO(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        raw, encoding=stream.encoding, errors=stream.errors, newline="\n", write_through=True
    )


def _preload() -> None:
    """Import what the children need, pytest's plugins as pytest imports them: rewritten."""
    from _pytest.config import _prepareconfig

    with tempfile.TemporaryDirectory() as folder:
        # An editable installation lists no module, so pytest rewrites ours only if it is named.
        options = ["-s", "-c", os.devnull, "--rootdir", folder, "-p", "ci_agent_eval"]
        config = _prepareconfig([*options, *PLUGINS])
        for name in (*PRELOADED, *_list_modules()):
            with suppress(ModuleNotFoundError):  # an environment of `make compat` lacks some
                importlib.import_module(name)
        _prepare()
        config._ensure_unconfigure()
    tempfile.tempdir = None


def _list_modules() -> Iterator[str]:
    for name in PRELOADED_PACKAGES:
        folder = _ROOT / "ci_agent_eval" / name
        for module in pkgutil.walk_packages([str(folder)], f"ci_agent_eval.{name}."):
            yield module.name


def _prepare() -> None:
    """Do once what takes most of a short child's time."""
    with suppress(ModuleNotFoundError):  # as above
        from ci_agent_eval.contract.base import build_models
        from ci_agent_eval.render.html import assets

        build_models()
        environment = assets.load_template().environment
        for name in assets.TEMPLATES:  # compiled anew where Python writes no bytecode
            environment.get_template(name)


def _main(connection: socket.socket) -> None:
    del sys.path[0]  # this module's folder
    with warnings.catch_warnings():
        _preload()
    del os.environ["OPENBLAS_NUM_THREADS"]
    tops = frozenset(name.partition(".")[0] for name in sys.modules) | {
        "sitecustomize",
        "usercustomize",
    }
    names = json.dumps(sorted(tops)).encode()
    connection.sendall(_LENGTH.pack(len(names)) + names)
    gc.freeze()  # a child's collections pass over what is shared, which would copy it
    use_fork_server()
    while True:
        # What ends the requester's process group must not end the server before the requester.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        child, handover = _serve(connection)
        _join_group(child)
        connection.close()
        ours, connection = socket.socketpair()
        if os.fork() != 0:
            break
        ours.close()
        handover.close()
    connection.close()
    _servers.append(_Server(ours, tops, os.environ))
    _become(child, handover)
    _run(child.words, _split_path(child.environ, child.cwd))


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
