"""No secret of a result file reaches a report, and no episode is lost for having had one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from pydantic import BaseModel

from ci_agent_eval.analysis.loaded_results import (
    CheckRecord,
    EvaluationScore,
    JUnitCase,
    LoadedResults,
    PlainTests,
    TrajectoryStep,
    build_episode_record,
)
from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Assertion, Conditions, Instructions, SideUsage
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.contract.results import AdaptiveStop, CollectionError, Results, Session
from ci_agent_eval.redaction import REDACTED, Redactor
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.loaded_redaction import redact_results
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from tests.builders import episode, failing

SECRET = "Zx9-plain-value"
REDACT = Redactor((SECRET,)).text
A, B = "sk-" + "a" * 24, "sk-" + "b" * 24


def assertion(severity: Any = "error") -> Assertion:
    return Assertion(
        name=SECRET, passed=False, reason=SECRET, severity=severity, file=SECRET, line=1
    )


FACTS = replace(
    build_episode_record(
        episode(
            SECRET,
            nodeid=SECRET,
            file=SECRET,
            case=SECRET,
            reason=SECRET,
            agent=SECRET,
            model=SECRET,
        )
    ),
    failed_assertions=(assertion(),),
    warnings=(assertion("warning"),),
    violations=(BudgetViolation(SECRET, 1.0, 2.0, statistic="p95", unit=SECRET),),
    was=(SECRET,),
    conditions=Conditions(
        tools=(SECRET,),
        prices=SECRET,
        judge=SECRET,
        instructions=(Instructions(kind="tool", name=SECRET, text=SECRET, recorded=SECRET),),
    ),
    steps=(TrajectoryStep(1, SECRET, SECRET),),
    evaluation=EvaluationScore(0.5, 2, 1),
    judge=SideUsage(calls=1, cost_usd=0.5),
    checks=(CheckRecord(SECRET, 0.5, 0.5),),
    hard_limits=((SECRET, 1.0),),
)

LOADED = LoadedResults(
    episodes=(FACTS,),
    tests=PlainTests(
        failing=(
            JUnitCase(SECRET, SECRET, "failed", SECRET, SECRET, file=SECRET, line=1, nodeid=SECRET),
        ),
        flaky=(SECRET,),
    ),
    sessions=(
        Session(
            state="finished",
            suite=SECRET,
            stopped=SECRET,
            commit=SECRET,
            run=SECRET,
            unafforded=(SECRET,),
            adaptive_stops=(
                AdaptiveStop(scenario_id=SECRET, agent=SECRET, cause="maximum", required=0.5),
            ),
            collection_errors=(CollectionError(nodeid=SECRET, message=SECRET),),
        ),
    ),
    sources=(SourceFile(SECRET, "junit"),),
    findings=(Finding("collection_error", SECRET, SECRET),),
)

FIXED = {"cause", "gate", "outcome", "severity", "statistic", "kind", "state", "schema_version"}


def texts_in(value: Any, name: str = "") -> Iterator[str]:
    """Every text of a value but for the contract's fixed words."""
    if isinstance(value, str):
        yield from () if name in FIXED else (value,)
    elif hasattr(value, "_asdict"):
        for key, item in value._asdict().items():
            yield from texts_in(item, key)
    elif isinstance(value, tuple):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, BaseModel):
        for key, item in value:
            yield from texts_in(item, key)
    elif is_dataclass(value):
        for part in fields(value):
            yield from texts_in(getattr(value, part.name), part.name)


def test_every_text_is_redacted():
    # Were a field added and forgotten here, the first line would say so: it has a text of its own.
    assert set(texts_in(LOADED)) == {SECRET}
    assert set(texts_in(redact_results(LOADED, REDACT))) == {REDACTED}


def nones_in(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, tuple) and not hasattr(value, "_asdict"):
        for item in value:
            yield from nones_in(item, path)
    elif is_dataclass(value) or isinstance(value, BaseModel) or hasattr(value, "_asdict"):
        names = getattr(value, "_fields", None) or [
            *getattr(type(value), "model_fields", ()),
            *(f.name for f in (fields(value) if is_dataclass(value) else ())),
        ]
        for name in names:
            yield from nones_in(getattr(value, name), name)


def test_the_value_above_leaves_no_text_unset():
    figures = {
        "confirmation",  # its records are counted, and their texts are shown nowhere
        "min_pass_rate",
        "min_passes",
        "minimum_iterations",
        "tokens",
        "cost_usd",
        "exit_status",
        "process_status",
        "simulated_user",
        "selected",
        "wall_time_s",
        "shard",
        "suite_stop",  # figures and one of the contract's words
        "stop_reason",  # one of the contract's words
        "duration_ms",
        "turns",
        "reasoning",
        "threshold",
    }
    assert set(nones_in(LOADED)) == figures


def test_the_fixed_words_stay():
    clean = redact_results(LOADED, Redactor((SECRET, "required", "collection_error")).text)
    assert clean.episodes[0].gate == "required"
    assert clean.findings[0].kind == "collection_error"


@pytest.fixture
def merged(tmp_path):
    """Load two episodes that differ in a secret alone, and merge them."""

    def run(*episodes: Any) -> tuple[LoadedResults, Results]:
        lines = "".join(f"{canonical_json(item)}\n" for item in episodes)
        (tmp_path / "a.jsonl").write_text(lines)
        redact = Redactor().text
        with EpisodeSpool(redact) as spool:
            loaded = load_results(["a.jsonl"], [], root=tmp_path, spool=spool, redact=redact)
            write_results(tmp_path / "results.json", "s", spool)
        return loaded, Results.model_validate_json((tmp_path / "results.json").read_bytes())

    return run


@pytest.mark.parametrize("turned", [False, True])
def test_scenarios_that_differ_only_in_a_secret_are_both_reported(merged, turned):
    pair = [failing(f"t {A}", nodeid="t.py::test[1]"), episode(f"t {B}", nodeid="t.py::test[1]")]
    loaded, results = merged(*(reversed(pair) if turned else pair))
    expected = [("t [redacted]", "failed"), ("t [redacted]#2", "passed")]
    assert [(e.scenario_id, e.outcome) for e in loaded.episodes] == expected
    assert [(e.scenario_id, e.outcome) for e in results.episodes] == expected
    assert A not in str(loaded)
    tally = summarize_results(loaded, suite="s", budgets=SuiteBudgets()).tally
    assert (tally.failed, tally.passed) == (1, 1)


def test_tests_that_differ_only_in_a_secret_are_kept_apart_in_both(merged):
    loaded, results = merged(
        episode("t", nodeid=f"t.py::test[{B}]"),
        failing("t", nodeid=f"t.py::test[{A}]"),
        episode("t", nodeid="t.py::test[c]"),
    )
    expected = [
        ("t.py::test[[redacted]]", "failed"),
        ("t.py::test[[redacted]]#2", "passed"),
        ("t.py::test[c]", "passed"),
    ]
    assert [(e.nodeid, e.outcome) for e in loaded.episodes] == expected
    assert [(e.nodeid, e.outcome) for e in results.episodes] == expected


def test_attempts_of_one_scenario_stay_attempts_of_one_scenario(merged):
    loaded, results = merged(failing(f"t {A}"), episode(f"t {A}", attempt=2))
    for episodes in (loaded.episodes, results.episodes):
        assert [(e.scenario_id, e.attempt) for e in episodes] == [
            ("t [redacted]", 1),
            ("t [redacted]", 2),
        ]


def test_keys_of_one_object_that_differ_only_in_a_secret_are_both_written(merged):
    _, results = merged(episode("t", metadata={A: 1, B: 2}))
    assert results.episodes[0].metadata == {REDACTED: 1, f"{REDACTED}#2": 2}


def test_a_token_after_a_line_break_is_found_in_the_written_line(merged):
    _, results = merged(failing("t", reason=f"no:\n{A}\n{json.dumps({'a': chr(10) + B})}"))
    assert A not in (text := results.model_dump_json())
    assert B not in text
