"""`make bench`: what the gateway adds to the model calls of a subprocess; writes GATEWAY.md anew.

One client, with the connection kept, asks a scripted model server in another process, directly and
through the gateway in turn. The gateway's work is in this process, beside the client.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import getloadavg
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, process_time

import httpx2
from measure import machine, serve_model

from ci_agent_eval.model_traffic.gateway.server import serve_episode
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

ROUNDS = 300
STARTS = 50


@dataclass(frozen=True)
class Case:
    """A kind of call."""

    remark: str
    history: int = 0
    """Characters of the conversation so far."""
    is_streamed: bool = False

    @property
    def body(self) -> bytes:
        """The request."""
        messages = [{"role": "user", "content": "x" * self.history + "How much?"}]
        return json.dumps(
            {"model": "gpt-5-mini", "messages": messages, "stream": self.is_streamed}
        ).encode()


CASES = (
    Case("a call"),
    Case("a streamed call", is_streamed=True),
    Case("a call with a history of 1 MB", history=1_000_000),
)


def timed(do: Callable[[], object]) -> float:
    """Return the milliseconds that a function takes."""
    started = perf_counter()
    do()
    return (perf_counter() - started) * 1000


def starts() -> tuple[float, float]:
    """Return the milliseconds of the first start and stop, and the median of later ones."""

    def start() -> None:
        with serve_episode(TrafficRecorder(monotonic), {}):
            pass

    first = timed(start)
    return first, median(timed(start) for _ in range(STARTS))


def import_ms() -> float:
    """Return the milliseconds of the gateway's imports in a process that has the engine's."""
    code = (
        "import ci_agent_eval.engine.adapters.command, ci_agent_eval.engine.adapters.http, time;"
        "t = time.perf_counter(); import ci_agent_eval.model_traffic.gateway.server;"
        "print((time.perf_counter() - t) * 1000)"
    )
    command = [sys.executable, "-c", code]
    return median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    )


@dataclass(frozen=True)
class Times:
    """Median milliseconds of a call."""

    wall: float
    processor: float


def measure_calls(*calls: Callable[[], object]) -> list[Times]:
    """Measure calls in turn, after ten rounds that are not counted."""
    walls: list[list[float]] = [[] for _ in calls]
    spent: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS + 10):
        for number, call in enumerate(calls):
            started = process_time()
            walls[number].append(timed(call))
            spent[number].append((process_time() - started) * 1000)
    return [
        Times(median(wall[10:]), median(each[10:])) for wall, each in zip(walls, spent, strict=True)
    ]


def compare(case: Case, environ: Mapping[str, str]) -> list[Times]:
    """Return the times of a call, direct and through the gateway."""
    body = case.body
    with (
        httpx2.Client(timeout=60) as client,
        serve_episode(TrafficRecorder(monotonic), environ) as address,
    ):

        def build_call(url: str) -> Callable[[], object]:
            headers = {"content-type": "application/json"}
            return lambda: client.post(f"{url}/chat/completions", content=body, headers=headers)

        variables = address.build_environment()
        return measure_calls(
            build_call(environ["OPENAI_BASE_URL"]), build_call(variables["OPENAI_BASE_URL"])
        )


def rows() -> Iterator[str]:
    """Yield the lines of the table."""
    with serve_model(["It is $1,500.00."]) as url:
        for case in CASES:
            direct, through = compare(case, {"OPENAI_BASE_URL": url})
            figures = (
                direct.wall,
                through.wall,
                through.wall - direct.wall,
                through.processor - direct.processor,
            )
            yield " | ".join([f"| {case.remark}", *(f"{one:.2f} ms" for one in figures)]) + " |"


def page() -> str:
    """Render the page that records the figures."""
    load = getloadavg()[0]
    first, later = starts()
    return "\n".join(
        [
            "# What the gateway adds",
            "",
            f"Measured by `make bench` on: {machine()}; load average {load:.1f} at the start.",
            "",
            "The [gateway](../docs/agents.md) runs while an episode has subprocesses. Starting",
            f"and stopping it takes {later:.1f} ms (median of {STARTS}), the first time",
            f"{first:.0f} ms; its imports take {import_ms():.0f} ms once, after the engine's.",
            "",
            f"Medians of {ROUNDS} calls each, in turn, on the loopback, with the connections kept.",
            "The processor's time is that of client and gateway, which a busy machine changes less",
            "than the wall time. A real model takes far longer.",
            "",
            "| what | directly | through the gateway | added | processor, added |",
            "|---|---:|---:|---:|---:|",
            *rows(),
            "",
        ]
    )


def main() -> None:
    """Measure, print and record."""
    text = page()
    print(text)
    (Path(__file__).parent / "GATEWAY.md").write_text(text)


if __name__ == "__main__":
    main()
