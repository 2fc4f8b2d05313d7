"""Run a command and say what its whole tree of processes took; Linux only.

`python tree.py OUT.json SECONDS COMMAND...`. A process of its own between who measures and
what is measured: it takes in orphans as well (PR_SET_CHILD_SUBREAPER), so that the processor
time of every process counts, and its own does not. Memory is looked at ten times a second:
the sum of PSS, in which a page that n processes share counts for one n-th in each. Who looks
takes at most a twentieth of a core. What is over between two looks is seen all the same where
it is a single process: the kernel keeps the peak of the largest one.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

_PR_SET_CHILD_SUBREAPER = 36
"""Of prctl(2)."""
_LOOKS_EVERY_S = 0.1
_SHARE = 20


@dataclass
class Taken:
    """What a tree took."""

    status: int = 0
    """The exit code of the command, or minus the signal that ended it."""
    seconds: float = 0
    """Until the command had ended."""
    cpu_seconds: float = 0
    """User and system time of all processes."""
    peak_mb: float = 0
    processes: int = 0
    """The most that ran at once."""
    timed_out: bool = False


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below one, as far as they are still there."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for t in threads for c in (t / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from descendants(child)


def pss_kb(pid: int) -> int:
    """Return the share of memory of a process; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def look(taken: Taken, ended: threading.Event) -> None:
    """Keep the peaks until it ends."""
    pause = 0.0
    while not ended.wait(pause):
        started = perf_counter()
        shares = [pss_kb(pid) for pid in descendants(os.getpid())]
        taken.peak_mb = max(taken.peak_mb, sum(shares) / 1024)
        taken.processes = max(taken.processes, sum(share > 0 for share in shares))
        pause = max(_LOOKS_EVERY_S, (perf_counter() - started) * _SHARE)


def end_all(taken: Taken) -> None:
    """Kill what runs; its own fault or that it took too long."""
    taken.timed_out = True
    for pid in list(descendants(os.getpid())):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def measured(command: Sequence[str], timeout_s: float) -> Taken:
    """Run the command until it and all that it started have ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    taken, ended = Taken(), threading.Event()
    started = perf_counter()
    process = subprocess.Popen(command)
    looking = threading.Thread(target=look, args=(taken, ended))
    looking.start()
    timer = threading.Timer(timeout_s, end_all, (taken,))
    timer.start()
    _reap(process.pid, taken, started)
    timer.cancel()
    ended.set()
    looking.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken.peak_mb = max(taken.peak_mb, used.ru_maxrss / 1024)
    taken.cpu_seconds = used.ru_utime + used.ru_stime
    return taken


def _reap(pid: int, taken: Taken, started: float) -> None:
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if ended == pid:
            taken.seconds = perf_counter() - started
            taken.status = os.waitstatus_to_exitcode(status)


def main(arguments: Sequence[str]) -> None:
    """Measure, and write what was taken."""
    out, timeout_s, *command = arguments
    Path(out).write_text(json.dumps(asdict(measured(command, float(timeout_s)))))


if __name__ == "__main__":
    main(sys.argv[1:])
