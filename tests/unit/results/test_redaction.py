"""No secret of a result file reaches a report, and a file stays readable for having had one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import CollectionError, Results, Session
from ci_agent_eval.redaction import REDACTED, Redactor
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from tests.builders import calling, episode, failing

SECRET = "Zx9-plain-value"
A, B = "sk-" + "a" * 24, "sk-" + "b" * 24


@pytest.fixture
def merged(tmp_path):
    """Load the episodes of a file, and merge them."""

    def run(*episodes: Any, secrets: tuple[str, ...] = ()) -> tuple[LoadedResults, Results]:
        lines = "".join(f"{canonical_json(item)}\n" for item in episodes)
        (tmp_path / "a.jsonl").write_text(lines)
        redact = Redactor(secrets).text
        with EpisodeSpool() as spool:
            loaded = load_results(["a.jsonl"], [], root=tmp_path, spool=spool, redact=redact)
            write_results(tmp_path / "results.json", "s", spool)
        return loaded, Results.model_validate_json((tmp_path / "results.json").read_bytes())

    return run


def test_every_text_of_an_episode_is_redacted(merged):
    said = calling({"name": SECRET, "arguments": {SECRET: SECRET}, "result": [SECRET]})
    names = ("scenario_id", "nodeid", "file", "case", "reason", "agent", "model", "thread_id")
    check = {"name": SECRET, "passed": False, "reason": f"{SECRET} is not a number"}
    item = episode(
        **dict.fromkeys(names, SECRET),
        was=(SECRET,),
        assertions=(check,),
        trajectory=said.trajectory,
        budgets={"custom": {SECRET: {"used": 2, "limit": 1, "unit": SECRET}}},
        conditions={"tools": (SECRET,), "instructions": [{"kind": "tool", "text": SECRET}]},
        metadata={SECRET: [{"a": SECRET}]},
        outcome="failed",
    )
    loaded, results = merged(item, secrets=(SECRET,))
    assert len(loaded.episodes) == 1
    assert SECRET not in repr(loaded) + results.model_dump_json()
    assert results.episodes[0].model_dump_json() == item.model_dump_json().replace(SECRET, REDACTED)


def test_session_and_tests_are_redacted_and_joined(tmp_path):
    errors = (CollectionError(nodeid=SECRET, message=SECRET),)
    session = Session(state="finished", suite=SECRET, stopped=SECRET, collection_errors=errors)
    (tmp_path / "session.json").write_text(canonical_json(session))
    item = failing("a", nodeid=f"a.py::test[{SECRET}]")
    (tmp_path / "results.json").write_text(f"[{canonical_json(item)}]")
    failure = f'<failure message="{SECRET}">{SECRET}</failure>'
    cases = [("a", f"test[{SECRET}]"), (SECRET, SECRET)]
    xml = "".join(f'<testcase classname="{c}" name="{n}">{failure}</testcase>' for c, n in cases)
    (tmp_path / "junit.xml").write_text(f'<testsuite name="{SECRET}" tests="9">{xml}</testsuite>')
    redact = Redactor((SECRET,)).text
    loaded = load_results(["."], ["junit.xml"], root=tmp_path, redact=redact)
    assert SECRET not in repr(loaded)
    assert [case.message for case in loaded.tests.failing] == [REDACTED]
    assert not [f for f in loaded.findings if "JUnit" in str(f.message)]


def test_the_words_of_the_files_stay(merged):
    loaded, _ = merged(episode(gate="required", reason=A), secrets=("required", "completed"))
    assert (loaded.episodes[0].gate, loaded.episodes[0].reason) == ("required", REDACTED)


def test_episodes_that_differ_only_in_a_secret_are_a_finding(merged):
    loaded, _ = merged(failing(f"t {A}"), episode(f"t {B}"))
    assert [(e.scenario_id, e.outcome) for e in loaded.episodes] == [("t [redacted]", "failed")]
    (found,) = [one for one in loaded.findings if one.kind == "duplicate"]
    assert found.blocking
    assert "names that differ in more than a secret" in found.message


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
