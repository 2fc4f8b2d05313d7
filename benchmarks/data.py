"""The data the benchmarks run on, made anew each time from nothing but numbers."""

from __future__ import annotations

import json
from pathlib import Path
from xml.sax.saxutils import quoteattr


def write_junit(folder: Path, files: int, cases: int) -> None:
    """Write `files` JUnit files of `cases` cases each, one failing in each file."""
    for number in range(files):
        (folder / f"junit-{number:03}.xml").write_text(_junit(number, cases))


def _junit(number: int, cases: int) -> str:
    rows = [
        f'<testcase classname="tests.part_{number:03}.test_module" '
        f'name={quoteattr(f"test_case[{case}-value {case % 7}]")} time="0.0{case % 10}" />'
        for case in range(cases - 1)
    ]
    rows.append(
        f'<testcase classname="tests.part_{number:03}.test_module" name="test_last" time="0.1">'
        '<failure message="assert 1 == 2">def test_last():\n&gt;   assert 1 == 2</failure>'
        "</testcase>"
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0" '
        f'failures="1" skipped="0" tests="{cases}" time="1.5">{"".join(rows)}'
        "</testsuite></testsuites>"
    )


def write_results(path: Path, episodes: int, every: int = 97, run: int = 0) -> None:
    """Write a `results.json` of two-turn episodes with tool calls, 20 iterations a scenario.

    One of `every` so many failed; latencies and costs are those of that `run`.
    """
    lines = ",\n".join(_episode(number, every, run) for number in range(episodes))
    header = '{"schema_version":"1","suite":"default","episodes":['
    path.write_text(f"{header}\n{lines}\n]}}\n")


def _episode(number: int, every: int, run: int) -> str:
    scenario, iteration = divmod(number, 20)
    call = {"name": "lookup_order", "arguments": {"order_id": 1000 + scenario}, "result": "x" * 80}
    turns = [
        {"role": "user", "content": "Please refund my order. " * 4},
        {
            "role": "assistant",
            "content": "Your order is on its way back. " * 6,
            "tool_calls": [call, {**call, "name": "issue_refund"}],
            "latency_ms": 400 + (number * 7 + run * 31) % 300,
            "tokens": {"input": 900, "output": 120},
            "cost_usd": round(0.0041 + (number * 3 + run) % 17 * 0.00001, 6),
            "source": "live",
        },
    ]
    failed = number % every == 0
    episode = {
        "schema_version": "1",
        "scenario_id": f"scenario_{scenario:04}",
        "nodeid": f"tests/test_desk.py::test_scenario[{scenario}-{iteration}]",
        "file": "tests/test_desk.py",
        "line": 12,
        "iteration": iteration + 1,
        "outcome": "failed" if failed else "passed",
        "assertions": [
            {"name": "refunds", "passed": not failed, "file": "tests/test_desk.py", "line": 20},
            {"name": "polite", "passed": True, "file": "tests/test_desk.py", "line": 21},
        ],
        "budgets": {"max_turns": 3, "tool_calls": 4, "latency_ms": 2000, "cost_usd": 0.05},
        "trajectory": {"turns": turns},
        "duration_ms": 700,
    }
    return json.dumps(episode, sort_keys=True, separators=(",", ":"))
