"""Builders with defaults: a test shows only what matters to it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun, ComparePolicy, NoBaseline
from ci_agent_eval.analysis.loaded_results import LoadedResults, build_episode_record
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import Finding, SourceFile, SuiteStop
from ci_agent_eval.contract.results import JournalLine, Session
from ci_agent_eval.contract.scenario_manifest import ScenarioManifest, parse_manifest
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.gate.report import Report, build_report
from ci_agent_eval.results.join import build_pytest_address

COST_STOP = SuiteStop("total_cost_usd", used=5.02, limit=5.0)
"""The budget of a suite at which a run was stopped."""

HOSTILE = (
    "@octocat see #12, acme/support-agent#3, GH-4, https://evil.example/x, www.evil.example,"
    " me@evil.example, 9c1d2e7aa0b1c2d3e4f5061728394a5b6c7d8e9f :tada: $`x`$ &#64;octocat\r\n"
    "# heading | cell \\| cell\n\n<img src=x onerror=alert(1)></details></code> ![i](http://e/i.png)"
    " [l](http://e) ```fence``` ` `` <!-- --> \x1b[31mred\x1b[0m ::error::x ##[error]x"
    "\n::set-output name=a::b\n[ref]: http://e\n\u202eRTL\u202c zero\u200bwidth \U000e0041tag"
)


def turn(content: str = "hi", **overrides: Any) -> dict[str, Any]:
    """One agent turn as it is written down."""
    return {"role": "assistant", "content": content, "source": "scripted", **overrides}


def tool_call(name: str = "lookup_order", **overrides: Any) -> dict[str, Any]:
    return {"name": name, "arguments": {"order_id": 1001}, "result": "ok", **overrides}


def failed_assertion(name: str = "says sorry", **overrides: Any) -> dict[str, Any]:
    return {
        "name": name,
        "passed": False,
        "reason": "it did not",
        "file": "tests/test_refunds.py",
        "line": 48,
        **overrides,
    }


def episode(scenario_id: str = "refund", **overrides: Any) -> Episode:
    """A passing episode of one turn."""
    fields: dict[str, Any] = {
        "scenario_id": scenario_id,
        "nodeid": f"tests/test_refunds.py::test_{scenario_id}",
        "file": "tests/test_refunds.py",
        "line": 40,
        "outcome": "passed",
        "trajectory": {"turns": [{"role": "user", "content": "hello"}, turn(latency_ms=100)]},
        **overrides,
    }
    return Episode.model_validate(fields)


def failing(scenario_id: str = "refund", **overrides: Any) -> Episode:
    """An episode with one failed assertion."""
    fields: dict[str, Any] = {
        "outcome": "failed",
        "assertions": [failed_assertion()],
        **overrides,
    }
    return episode(scenario_id, **fields)


def evaluated(scenario_id: str = "diagram", *passed: bool, **overrides: Any) -> Episode:
    """An evaluation with an assertion for each of `passed`."""
    fields: dict[str, Any] = {
        "nodeid": f"evals/diagram_eval.py::test_{scenario_id}",
        "file": "evals/diagram_eval.py",
        "line": 10,
        "mode": "evaluation",
        "gate": "advisory",
        "assertions": [
            {
                "name": f"assertion {number}",
                "passed": one,
                "reason": None if one else "it did not",
                "file": "evals/diagram_eval.py",
                "line": 10 + number,
            }
            for number, one in enumerate(passed, start=1)
        ],
        **overrides,
    }
    return episode(scenario_id, **fields)


def loaded(*episodes: Episode, **overrides: Any) -> LoadedResults:
    """What a run of these episodes leaves behind, read from one finished session."""
    fields: dict[str, Any] = {
        "episodes": tuple(build_episode_record(item) for item in episodes),
        "sessions": (Session(state="finished", wall_time_s=2.5, selected=len(episodes)),),
        "sources": (SourceFile("results.json", "episodes", cases=len(episodes)),),
        **overrides,
    }
    return LoadedResults(**fields)


def report(
    *episodes: Episode,
    suite: str = "default",
    budgets: SuiteBudgets | None = None,
    policy: GatePolicy | None = None,
    baseline: Baseline | NoBaseline | None = None,
    compare_policy: ComparePolicy | None = None,
    quarantine: tuple[WaiverStatus, ...] = (),
    acknowledged: tuple[WaiverStatus, ...] = (),
    manifest: ScenarioManifest | None = None,
    **overrides: Any,
) -> Report:
    """The report of a run of these episodes; `overrides` replace parts of `Loaded`."""
    return build_report(
        loaded(*episodes, **overrides),
        suite=suite,
        budgets=budgets or SuiteBudgets(),
        policy=policy or GatePolicy(),
        baseline=baseline,
        compare_policy=compare_policy,
        quarantine=quarantine,
        acknowledged=acknowledged,
        manifest=manifest,
    )


def manifest_of(*required: str, advisory: Sequence[str] = (), **files: str) -> ScenarioManifest:
    """A manifest of these scenarios; `files` name the files of some, else it is that of episode."""
    tables = {"required": required, "advisory": advisory}
    lines = [
        line
        for table, names in tables.items()
        for line in (
            f"[{table}]",
            *(f'"{name}" = "{files.get(name, "tests/test_refunds.py")}"' for name in names),
        )
    ]
    return parse_manifest("\n".join(lines), "agent-eval-scenarios.toml")


def agreement(scenario: str = "refund", **overrides: Any) -> WaiverStatus:
    """What was agreed about a scenario, and still holds."""
    fields: dict[str, Any] = {
        "agent": None,
        "reason": "known",
        "until": dt.date(2026, 1, 31),
        "expired": False,
        **overrides,
    }
    return WaiverStatus(scenario, **fields)


def in_quarantine(scenario: str = "refund", **overrides: Any) -> WaiverStatus:
    """The same of a quarantine, which has an owner."""
    return agreement(scenario, **{"owner": "payments", "reason": "flaky tool", **overrides})


def baseline(*runs: Sequence[Episode], label: str = "main@4f2a91c") -> Baseline:
    """The runs of the base, the latest first."""
    return Baseline(label, tuple(BaselineRun(loaded(*run).episodes) for run in runs))


def finding(kind: Any = "unreadable_file", **overrides: Any) -> Finding:
    fields: dict[str, Any] = {"where": "junit.xml", "message": "it is cut off", **overrides}
    return Finding(kind, **fields)


def junit_case(body: str = "", **attributes: str) -> str:
    """One `<testcase>`; attributes are written as they are."""
    fields = {"classname": "tests.test_math", "name": "test_sum", "time": "0.001", **attributes}
    written = " ".join(f'{name}="{value}"' for name, value in fields.items())
    return f"<testcase {written}>{body}</testcase>" if body else f"<testcase {written} />"


def junit_xml(*cases: str, **attributes: str) -> str:
    """A JUnit document of one suite, as pytest lays it out."""
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f"<testsuites><testsuite{written}>{''.join(cases)}</testsuite></testsuites>\n"
    )


def junit_case_of(item: Episode, body: str = "") -> str:
    """The `<testcase>` that pytest and our plugin write for an episode."""
    classname, name = build_pytest_address(item.nodeid or "")
    node = f'<properties><property name="agent_eval.nodeid" value="{item.nodeid}"/></properties>'
    return junit_case(node + body, classname=classname, name=name)


def write_run(
    folder: Path,
    *episodes: Episode,
    session: Session | None = None,
    results: bool = True,
    journal: Mapping[str, Sequence[str]] | None = None,
    junit: str | None = None,
) -> Path:
    """Write the folder that a run of our plugin leaves behind; `journal` is file name to lines."""
    folder.mkdir(parents=True, exist_ok=True)
    written = session or Session(state="finished", selected=len(episodes))
    (folder / "session.json").write_text(canonical_json(written), encoding="utf-8")
    if results:
        lines = [canonical_json(item) for item in sorted(episodes, key=lambda item: item.key)]
        text = "".join(render_results(written.suite, lines))
        (folder / "results.json").write_text(text, encoding="utf-8")
    for name, journal_lines in (journal or {}).items():
        (folder / "episodes").mkdir(exist_ok=True)
        (folder / "episodes" / name).write_text("".join(journal_lines), encoding="utf-8")
    if junit is not None:
        (folder / "junit.xml").write_text(junit, encoding="utf-8")
    return folder


def journal_line(item: Episode, event: Any = "ended") -> str:
    return canonical_json(JournalLine(event=event, episode=item)) + "\n"


def talk(*turns: str | dict[str, Any], **overrides: Any) -> Episode:
    """An episode of these turns: a text is the user's, anything else a turn as written."""
    said = [{"role": "user", "content": t} if isinstance(t, str) else t for t in turns]
    return episode(trajectory={"turns": said}, **overrides)


def calling(*calls: str | dict[str, Any], reply: str = "Done.") -> Episode:
    """An episode of one exchange in which the agent makes these calls, then replies."""
    made = [{"name": call} if isinstance(call, str) else call for call in calls]
    return talk("do it", turn("", tool_calls=made), turn(reply))


def live(cost: float, latency: float = 900, tokens: int = 400) -> dict[str, Any]:
    """A trajectory of one live turn."""
    usage = {"input": tokens, "output": 50}
    shown = turn(source="live", cost_usd=cost, latency_ms=latency, tokens=usage)
    return {"turns": [{"role": "user", "content": "hello"}, shown]}
