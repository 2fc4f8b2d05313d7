"""Start-up, and JUnit files and episodes from loading to the published comment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from benchmarks.processes import ROOT, Figure, Row, alternate, median, run

ROUNDS = 7
PARSE = """
import sys
from xml.parsers.expat import ParserCreate
for path in sys.argv[1:]:
    parser = ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: None
    with open(path, "rb") as file:
        parser.ParseFile(file)
"""


def measure_start() -> Iterator[Row]:
    """Measure what the plugin adds to every start of pytest, and a report of one small file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_unrelated.py").write_text("def test_nothing():\n    pass\n")
        (folder / "pytest.ini").write_text("[pytest]\n")
        write_junit(folder, 1, 5)
        program = [sys.executable, "-m", "ci_agent_eval"]
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
        ]
        without, plugin, python, version, report = alternate(
            [
                lambda: run([*pytest, "-p", "no:ci_agent_eval"], folder),
                lambda: run(pytest, folder),
                lambda: run([sys.executable, "-c", ""], folder),
                lambda: run([*program, "--version"], folder),
                lambda: run([*program, "report", "--junit", "junit-*.xml"], folder, status=1),
            ],
            2 * ROUNDS,
        )
    added = (plugin.seconds - without.seconds) * 1000
    yield Row("pytest on an unrelated suite, without the plugin", str(without))
    yield Row("the same with the plugin", str(plugin), f"{added:+.0f} ms; target at most +30 ms")
    yield Row("Python's own start", str(python))
    yield Row("`agent-eval --version`", str(version))
    yield Row("`agent-eval report`, one JUnit file", str(report), "target under 0.3 s")


def measure_junit() -> Iterator[Row]:
    """Measure 100,000 JUnit cases and 2,000 episodes to the published comment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_junit(folder, 100, 1000)
        paths = sorted(str(path) for path in folder.glob("*.xml"))
        parse = [sys.executable, "-c", PARSE, *paths]
        bare, whole = alternate(
            [lambda: run(parse, folder), lambda: run_action(folder, junit="junit-*.xml")], ROUNDS
        )
        yield Row("100,000 JUnit cases: Expat alone, nothing stored", str(bare))
        times = f"{whole.seconds / bare.seconds:.1f} × Expat; target under 1.2 s and 100 MB"
        yield Row("100,000 JUnit cases, to the published comment", str(whole), times)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_results(folder / "results.json", 2_000, every=97)
        for number in range(1, 11):
            (folder / f"base/run-{number}").mkdir(parents=True)
            write_results(folder / f"base/run-{number}/results.json", 2_000, every=211)
        figure = median(
            [run_action(folder, results="results.json", baseline="base") for _ in range(3)]
        )
        yield Row(
            "2,000 episodes against 10 base runs of 2,000, to the published comment",
            str(figure),
            "target under 2 s",
        )


def write_junit(folder: Path, files: int, cases: int) -> None:
    """Write JUnit files, each with one failing case."""
    for number in range(files):
        rows = [
            f'<testcase classname="tests.part_{number:03}.test_module" '
            f'name={quoteattr(f"test_case[{case}-value {case % 7}]")} time="0.0{case % 10}" />'
            for case in range(cases - 1)
        ]
        rows.append(
            f'<testcase classname="tests.part_{number:03}.test_module" name="test_last">'
            '<failure message="assert 1 == 2">def test_last():\n&gt;   assert 1 == 2</failure>'
            "</testcase>"
        )
        (folder / f"junit-{number:03}.xml").write_text(
            '<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" '
            f'errors="0" failures="1" skipped="0" tests="{cases}" time="1.5">{"".join(rows)}'
            "</testsuite></testsuites>"
        )


def write_results(path: Path, episodes: int, *, every: int) -> None:
    """Write a `results.json` of two-turn episodes, 20 a scenario; one of `every` failed."""
    lines = ",\n".join(json.dumps(_build_episode(number, every)) for number in range(episodes))
    path.write_text(f'{{"schema_version":"1","suite":"default","episodes":[\n{lines}\n]}}\n')


def _build_episode(number: int, every: int) -> dict[str, object]:
    scenario, iteration = divmod(number, 20)
    call = {"name": "lookup_order", "arguments": {"order_id": 1000 + scenario}, "result": "x" * 80}
    answer = {
        "role": "assistant",
        "content": "Your order is on its way back. " * 6,
        "tool_calls": [call, {**call, "name": "issue_refund"}],
        "latency_ms": 400 + number * 7 % 300,
        "tokens": {"input": 900, "output": 120},
        "cost_usd": round(0.0041 + number * 3 % 17 * 0.00001, 6),
        "source": "live",
    }
    passed = number % every != 0
    return {
        "schema_version": "1",
        "scenario_id": f"scenario_{scenario:04}",
        "nodeid": f"tests/test_desk.py::test_scenario[{scenario}-{iteration}]",
        "file": "tests/test_desk.py",
        "line": 12,
        "iteration": iteration + 1,
        "outcome": "passed" if passed else "failed",
        "assertions": [{"name": "refunds", "passed": passed}, {"name": "polite", "passed": True}],
        "budgets": {"max_turns": 3, "tool_calls": 4, "latency_ms": 2000, "cost_usd": 0.05},
        "trajectory": {"turns": [{"role": "user", "content": "Refund my order. " * 6}, answer]},
        "duration_ms": 700,
    }


def run_action(folder: Path, **inputs: str) -> Figure:
    """Measure the action from loading to the published comment, on a fresh fake of GitHub."""
    event = folder / "event.json"
    pull = {"number": 7, "head": {"sha": "a" * 40, "repo": {"full_name": "octo/shop"}}}
    event.write_text(json.dumps({"pull_request": pull, "repository": {"full_name": "octo/shop"}}))
    with serve_github(folder) as api:
        environ = {
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
            **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
        }
        return run([sys.executable, "-m", "ci_agent_eval", "action"], folder, environ, status=1)


@contextmanager
def serve_github(folder: Path) -> Iterator[str]:
    """Serve the project's fake of GitHub in a process of its own; yield its address."""
    port_file = folder / "port"
    command = [sys.executable, "-m", "tests.github_fake", "--no-validate", "--port-file", port_file]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it prints a line when it serves
        try:
            yield f"http://127.0.0.1:{port_file.read_text().strip()}"
        finally:
            process.terminate()
