"""Whole processes: their wall time, processor time and peak of memory."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Row(NamedTuple):
    """A row of the page's table; the name identifies it."""

    name: str
    figure: str
    remark: str = ""


class Figure(NamedTuple):
    """What a process took, as the kernel counts it."""

    seconds: float
    megabytes: float
    cpu_seconds: float
    """Of all its processes; other work on the machine changes it less than the wall time."""

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.megabytes:.0f} MB"


# As installed: pip compiles what it installs.
ENVIRON = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def run(
    command: Sequence[str], folder: Path, environ: Mapping[str, str] = ENVIRON, status: int = 0
) -> Figure:
    """Run a command to its end and measure it; another exit status ends the benchmark."""
    log = folder / "benchmark.log"
    started = perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, ended, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode != status:
        sys.exit(f"{command} exited with {process.returncode}:\n{log.read_text()}")
    return Figure(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def median(figures: Sequence[Figure]) -> Figure:
    """Return the median times and the highest peak."""
    return Figure(
        statistics.median(figure.seconds for figure in figures),
        max(figure.megabytes for figure in figures),
        statistics.median(figure.cpu_seconds for figure in figures),
    )


def alternate(sides: Sequence[Callable[[], Figure]], rounds: int) -> list[Figure]:
    """Return the median of each side; they run in turns, as the machine's speed changes."""
    figures = [[side() for side in sides] for _ in range(rounds)]
    return [median(each) for each in zip(*figures, strict=True)]


def describe_machine() -> str:
    """Name the machine in a line."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {name}, Python {platform.python_version()}, load {load:.1f}"
