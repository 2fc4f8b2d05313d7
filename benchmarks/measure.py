"""`make bench`: measure what RESULTS.md records, side by side, and write it anew.

Every figure is a whole process, start-up included: wall time and peak resident memory as
the kernel counts them (`wait4`). Medians of alternating runs.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from data import write_junit, write_results
from starting import Image, Imports, image, imports, process_start

ROOT = Path(__file__).resolve().parent.parent
RUNS = 7
SHA = "a" * 40

BARE_PARSE = """
import sys
from xml.parsers.expat import ParserCreate
for path in sys.argv[1:]:
    parser = ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: None
    with open(path, "rb") as file:
        parser.ParseFile(file)
"""
JUNITPARSER = """
import sys
from junitparser import JUnitXml
for path in sys.argv[1:]:
    for suite in JUnitXml.fromfile(path):
        sum(1 for case in suite if case.is_failure)
"""


@dataclass(frozen=True)
class Figure:
    """One measured process."""

    seconds: float
    megabytes: float
    cpu: float = 0.0
    """Seconds of all its processes; a busy machine changes them less than the wall time."""


@contextmanager
def serve_model(script: Sequence[object]) -> Iterator[str]:
    """Serve a scripted model (`tests/model_server`) from a process apart; yield its base URL."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(script, file)
        file.flush()
        command = [sys.executable, "-m", "tests.model_server", file.name]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["base_url"]
            finally:
                process.terminate()


def run(command: list[str], cwd: Path, env: dict[str, str], allowed: tuple[int, ...]) -> Figure:
    """Run a command to its end and measure it."""
    started = perf_counter()
    with (cwd / "benchmark.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        sys.exit(
            f"{command} exited with {process.returncode}:\n{(cwd / 'benchmark.log').read_text()}"
        )
    return Figure(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def format_share(count: int, total: int) -> str:
    """Format a simulated share with its standard error."""
    error = math.sqrt(max(count, 1) * max(total - count, 1) / total) / total
    return f"{count / total:.1%} ±{error:.1%}"


def median(measure: Callable[[], Figure], runs: int = RUNS) -> Figure:
    """Return the median time and the highest peak of some runs."""
    return _median([measure() for _ in range(runs)])


def _median(figures: Sequence[Figure]) -> Figure:
    return Figure(
        statistics.median(figure.seconds for figure in figures),
        max(figure.megabytes for figure in figures),
        statistics.median(figure.cpu for figure in figures),
    )


@contextmanager
def fake_github(folder: Path) -> Iterator[str]:
    """Serve the project's GitHub fake in a process of its own; yields its address."""
    port_file = folder / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.github_fake", "--no-validate", "--port-file", port_file],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it says so once it serves
    try:
        yield f"http://127.0.0.1:{port_file.read_text().strip()}"
    finally:
        process.terminate()
        process.wait()


def workspace_env(folder: Path, api: str) -> dict[str, str]:
    """Return the environment the action sees in a pull request."""
    event = folder / "event.json"
    pull = {"number": 7, "head": {"sha": SHA, "repo": {"full_name": "octo/shop"}}}
    event.write_text(json.dumps({"pull_request": pull, "repository": {"full_name": "octo/shop"}}))
    return {
        "PATH": os.environ["PATH"],
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "octo/shop",
        "GITHUB_SHA": "b" * 40,
        "GITHUB_API_URL": api,
        "GITHUB_STEP_SUMMARY": str(folder / "step_summary.md"),
        "GITHUB_OUTPUT": str(folder / "output.txt"),
        "INPUT_MODE": "report",
        "INPUT_GITHUB-TOKEN": "ghs_fake",
    }


def action(folder: Path, **inputs: str) -> Figure:
    """Measure the action from load to published comment, against a fresh fake."""
    with fake_github(folder) as api:
        env = workspace_env(folder, api) | {f"INPUT_{k.upper()}": v for k, v in inputs.items()}
        return run([sys.executable, "-m", "ci_agent_eval", "action"], folder, env, (1,))


def plugin_cost(folder: Path) -> tuple[Figure, Figure]:
    """Measure pytest on an unrelated suite without the plugin and with it, in turns."""
    (folder / "test_unrelated.py").write_text("def test_nothing():\n    pass\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    env = dict(os.environ)
    pairs = [
        (
            run([*base, "-p", "no:ci_agent_eval"], folder, env, (0,)),
            run(base, folder, env, (0,)),
        )
        for _ in range(3 * RUNS)
    ]
    without, with_it = zip(*pairs, strict=True)
    return _median(without), _median(with_it)


def small_file(folder: Path) -> Figure:
    """Measure `agent-eval report` on one small file."""
    write_junit(folder, 1, 5)
    command = [sys.executable, "-m", "ci_agent_eval", "report", "--junit", "junit-*.xml"]
    return median(lambda: run(command, folder, dict(os.environ), (1,)), 3 * RUNS)


@dataclass(frozen=True)
class Start:
    """How long it takes until the program does something."""

    imports: dict[str, Imports]
    """By command."""
    process: float
    """Seconds from the action's start to its first request."""
    image: Image | str
    """A sentence where it could not be measured."""


def measure_start(folder: Path) -> Start:
    """Measure imports, and the way to the first request, of a report of one small file."""
    folder.mkdir()
    write_junit(folder, 1, 5)
    commands = {"--version": ["--version"], "report": ["report", "--junit", "junit-*.xml"]}

    def environ(api: str) -> dict[str, str]:
        return workspace_env(folder, api) | {"INPUT_JUNIT": "junit-*.xml"}

    return Start(
        {name: imports(words, folder) for name, words in commands.items()},
        process_start(folder, environ),
        image(folder, environ),
    )


def start_lines(start: Start) -> Iterator[str]:
    """Render how long it takes until the program does something."""
    yield from ("| what | time | remark |", "|---|---:|---|")
    for command, of in start.imports.items():
        yield (
            f"| imports of `agent-eval {command}` (`-X importtime`) | {of.milliseconds:.0f} ms "
            f"| {of.modules} modules: {of.shown} |"
        )
    yield f"| `agent-eval action` to its first request | {start.process:.2f} s | no container |"
    found = start.image
    if isinstance(found, str):
        yield f"| the image | not measured | {found} |"
        return
    layers = ", ".join(f"{name} {size:.0f} MB" for name, size in found.layers)
    yield f"| `docker run` to the first request | {found.seconds:.2f} s | the image was there |"
    yield f"| size of the image | {found.megabytes:.0f} MB | {layers} |"


def measure_all(folder: Path) -> list[tuple[str, Figure, str]]:
    """Measure everything; each row is a name, its figure, and a remark."""
    for name in ("plugin", "small", "junit", "episodes", "compared"):
        (folder / name).mkdir()
    rows: list[tuple[str, Figure, str]] = []
    without, with_it = plugin_cost(folder / "plugin")
    cost = (with_it.seconds - without.seconds) * 1000
    rows.append(("pytest on an unrelated suite, plugin off", without, ""))
    rows.append(("the same, plugin on", with_it, f"{cost:+.0f} ms; target under 50 ms"))
    python = median(lambda: run([sys.executable, "-c", ""], folder, dict(os.environ), (0,)))
    small = small_file(folder / "small")
    rows.append(("Python itself", python, ""))
    rows.append(("`agent-eval report`, one file of 5 cases", small, "target under 0.3 s"))
    rows += junit_rows(folder / "junit")
    write_results(folder / "episodes/results.json", 20_000)
    episodes = median(lambda: action(folder / "episodes", results="results.json"), 3)
    size = (folder / "episodes/results.json").stat().st_size / 1e6
    rows.append(
        ("20,000 episodes of JSON, load to published comment", episodes, f"{size:.0f} MB of JSON")
    )
    rows += compared_rows(folder / "compared")
    return rows


def compared_rows(folder: Path) -> list[tuple[str, Figure, str]]:
    """Measure 100 scenarios of 20 iterations against ten runs of the base; see COMPARISON.md."""
    write_results(folder / "results.json", 2_000)
    for number in range(1, 11):
        (folder / f"base/run-{number}").mkdir(parents=True)
        write_results(folder / f"base/run-{number}/results.json", 2_000, every=211, run=number)
    figure = median(lambda: action(folder, results="results.json", baseline="base"), 5)
    name = "2,000 episodes against 10 runs of 2,000, load to published comment"
    return [(name, figure, "target under 2 s")]


def junit_rows(folder: Path) -> list[tuple[str, Figure, str]]:
    """Measure 100 files of 1,000 cases: a bare parse, junitparser alone, and the whole job."""
    write_junit(folder, 100, 1000)
    files = sorted(str(path) for path in folder.glob("*.xml"))
    env = dict(os.environ)
    bare = median(lambda: run([sys.executable, "-c", BARE_PARSE, *files], folder, env, (0,)))
    alone = median(lambda: run([sys.executable, "-c", JUNITPARSER, *files], folder, env, (0,)), 3)
    whole = median(lambda: action(folder, junit="junit-*.xml"))
    return [
        ("100,000 JUnit cases: expat alone, nothing kept", bare, "1.0 ×"),
        ("100,000 JUnit cases: junitparser alone", alone, f"{alone.seconds / bare.seconds:.1f} ×"),
        (
            "100,000 JUnit cases: load to published comment",
            whole,
            f"{whole.seconds / bare.seconds:.1f} ×; target under 1.2 s and 100 MB",
        ),
    ]


def load_average() -> str:
    """Say how many processes wanted to run in the last minute, ours among them."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def machine() -> str:
    """Name the machine in a line."""
    info = Path("/proc/cpuinfo")
    names = [x.split(":")[1].strip() for x in info.read_text().splitlines() if "model name" in x]
    name = names[0] if names else platform.machine()
    return (
        f"{os.cpu_count()} cores, {name}, Python {platform.python_version()}, {platform.system()}"
    )


def table(rows: list[tuple[str, Figure, str]], start: Start) -> str:
    """Render the page that records the figures."""
    lines = [
        f"| {name} | {f.seconds:.3f} s | {f.megabytes:.0f} MB | {note} |" for name, f, note in rows
    ]
    return "\n".join(
        [
            "# Benchmark results",
            "",
            f"Measured by `make bench` on: {machine()}. Whole processes, start-up included;",
            "medians of alternating runs, peaks of memory. The published runs talk to a fake of",
            "GitHub on loopback, in a process of its own that is not counted. A long file of",
            "episodes is read on all cores; the peak of memory is that of the first process alone.",
            "",
            "Many episodes at once, beside the peers, and what an episode costs in runs of 20,000:",
            "[PEERS.md](PEERS.md). The engine: [ENGINE.md](ENGINE.md). Comparing:",
            "[COMPARISON.md](COMPARISON.md). Steering: [STEERING.md](STEERING.md) and",
            "[STEERING_HOOK.md](STEERING_HOOK.md). Watching the model traffic:",
            "[MODEL_TRAFFIC.md](MODEL_TRAFFIC.md); of other processes: [GATEWAY.md](GATEWAY.md).",
            "Agents of frameworks beside bare asyncio: [FRAMEWORKS.md](FRAMEWORKS.md). Recording",
            "dependencies, and selecting by them: [DEPENDENCIES.md](DEPENDENCIES.md); what commits",
            "select: [SELECTION.md](SELECTION.md).",
            "",
            "| what | wall time | peak memory | remark |",
            "|---|---:|---:|---|",
            *lines,
            "",
            "## Start",
            "",
            "One JUnit file of 5 cases. The imports are those of the fastest of 7 runs, with what",
            "`-X importtime` adds to each; the rest medians of 7, from the start of a process to",
            "the first byte that GitHub's address receives.",
            "",
            *start_lines(start),
            "",
        ]
    )


def main() -> None:
    """Measure, print and record."""
    with tempfile.TemporaryDirectory() as folder:
        page = table(measure_all(Path(folder)), measure_start(Path(folder) / "start"))
    print(page)
    (ROOT / "benchmarks/RESULTS.md").write_text(page)


if __name__ == "__main__":
    main()
