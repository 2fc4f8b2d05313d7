"""`make bench-peers`: measure everything in one go, print it, and write PEERS.md.

`ARGS=--quick` runs a twentieth of it and writes nothing: whether all of it still works.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from time import perf_counter

from .capacity import ROOT, measured_capacity, model_server
from .episodes import measured_many, measured_rounds, measured_slow, startups
from .growth import EMPTY, measured_growth, one_growth
from .junit import measured_parsers
from .page import Measured, section
from .runners import NODE_PROGRAM, RUNNERS, peer_python

sys.path.append(str(ROOT / "benchmarks"))
from data import write_junit
from measure import machine

PAGE = ROOT / "benchmarks/PEERS.md"
FAST_S = 0.05
SLOW_S = 1.0


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    episodes: int = 200
    rounds: int = 3
    slow: bool = True
    many: int = 2000
    many_rounds: int = 2
    growth: tuple[int, ...] = (200, 2000, 20_000)
    junit_files: int = 100
    capacity_calls: int = 10_000


QUICK = Plan(20, 1, slow=False, many=40, many_rounds=1, growth=(40, 80), junit_files=2)


def measured(plan: Plan) -> Measured:
    """Measure all of it."""
    load, started = os.getloadavg()[0], perf_counter()
    capacities = [
        (name, measured_capacity(delay_ms, calls))
        for name, delay_ms, calls in (
            ("without a delay", 0, plan.capacity_calls),
            ("at 50 ms", FAST_S * 1000, plan.capacity_calls // 4),
        )
    ]
    say(f"the model server: {capacities}")
    with model_server(FAST_S * 1000) as server:
        starting = startups(server, RUNNERS, FAST_S, say)
        fast = measured_rounds(server, starting, plan.episodes, say, rounds=plan.rounds)
        many = measured_many(server, starting, plan.many, plan.many_rounds, say)
        growth = measured_growth(plan.growth, server, say)
        empty = one_growth(EMPTY, server.url, plan.growth[-1])
    slow = []
    if plan.slow:
        with model_server(SLOW_S * 1000) as server:
            slow = measured_slow(server, starting, plan.episodes, say)
    parsed = measured_parsers(write_junit, plan.junit_files, say)
    return Measured(
        machine=machine(),
        load=load,
        versions=versions(),
        capacities=capacities,
        episodes=plan.episodes,
        fast=fast,
        slow=slow,
        many=many,
        many_episodes=plan.many,
        growth=growth,
        empty=empty,
        parsed=parsed,
        junit_files=plan.junit_files,
        minutes=(perf_counter() - started) / 60,
    )


def versions() -> str:
    """Name the versions of those that are compared."""
    asked = {
        sys.executable: ("pytest", "pydantic-ai-slim", "pydantic-evals"),
        peer_python("pytest"): (
            "pytest-xdist",
            "pytest-asyncio-cooperative",
            "pytest-asyncio-concurrent",
        ),
        peer_python("inspect"): ("inspect-ai",),
        peer_python("deepeval"): ("deepeval",),
    }
    found = [_version(python, name) for python, names in asked.items() for name in names]
    node = subprocess.run([NODE_PROGRAM, "--version"], capture_output=True, text=True, check=False)
    return f"Versions: {', '.join(found)}, Node {node.stdout.strip()} for what npm brings."


def _version(python: str, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return f"{name} {ran.stdout.strip()}"


def say(what: str) -> None:
    """Say what is measured now."""
    print(what, file=sys.stderr, flush=True)


def page(text: str) -> str:
    """Return the section as a page of its own."""
    return f"# Benchmark results: peers\n\nWritten by `make bench-peers`.\n\n{text}"


def main(arguments: list[str]) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--quick", action="store_true", help="run a little of it, write nothing")
    quick = parser.parse_args(arguments).quick
    text = page(section(measured(QUICK if quick else Plan())))
    print(text)
    if not quick:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
