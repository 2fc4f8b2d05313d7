"""`@llm_episode`: the episode that a test returns is its result."""

from __future__ import annotations

import json
import os

import pytest

SUITE = """
import json, unittest
import pytest
from ci_agent_eval import llm_episode

FINE = [{"name": "polite", "passed": True}]
RUDE = [{"name": "polite", "passed": False, "reason": "it shouted"}]

@llm_episode()
def test_document():
    return {
        "scenario_id": "refund_flow_v1", "thread_id": "t-1",
        "assertions": FINE, "scores": [{"name": "tone", "value": 0.5}],
        "budgets": {
            "max_turns": 5, "tool_calls": {"used": 3, "limit": 4},
            "latency_ms": {"p95": 1200, "limit": 2000},
        },
        "trajectory_summary": {"steps_count": 3, "tool_calls_count": 3, "note": "short"},
    }

@llm_episode(scenario_id_key="name", thread_id_key="thread")
@pytest.mark.parametrize("name", ["one", "two"])
def test_text(name, thread="t-2"): return json.dumps({"assertions": RUDE})

@llm_episode()
def test_over_budget():
    return {"assertions": FINE, "budgets": {"tool_calls": {"used": 5, "limit": 4}}}

@llm_episode()
def test_soft_budget(scenario_id="from_default"):
    return {"assertions": FINE, "budgets": {"tool_calls": {"used": 5, "limit": 4, "hard": False}}}

@llm_episode()
def test_warning():
    return {"assertions": [{**RUDE[0], "severity": "warning"}]}

class TestGroup:
    @llm_episode()
    async def test_async(self): return {"assertions": RUDE}

class TestCase(unittest.TestCase):
    @llm_episode()
    def test_case(self): return {"assertions": RUDE}

@llm_episode()
def test_outcome_failed(): return {"outcome": "failed", "reason": "it gave up"}

@llm_episode()
def test_outcome_error(): return {"outcome": "error", "reason": "rate limit"}

@llm_episode()
def test_outcome_skipped(): return {"outcome": "skipped", "reason": "no key"}

@llm_episode()
def test_nothing(): pass

@llm_episode()
def test_empty(): return {}

@llm_episode()
def test_raises(): raise OSError("gone")

@llm_episode()
def test_asserts():
    assert "sorry" in "hello"
    return {"assertions": FINE}

@pytest.fixture
def broken(): raise ValueError("no server")

@llm_episode()
def test_setup(broken): return {"assertions": FINE}

@pytest.mark.xfail
@llm_episode()
def test_expected(): return {"assertions": RUDE}
"""

SENTENCE = "return an Episode, a mapping, a JSON text, a dataclass, or an object with to_dict()"


@pytest.fixture(autouse=True)
def no_opik(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("OPIK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPIK_CONFIG_PATH", str(tmp_path / "none"))


REASONS = {
    "test_nothing": f"InputError: @llm_episode: the test returned nothing; {SENTENCE}",
    "test_empty": "ReturnedEpisodeError: it gives no outcome, no assertion and no measured budget",
    "test_outcome_error": "ReturnedEpisodeError: rate limit",
    "test_outcome_skipped": "no key",
    "test_outcome_failed": "failed: outcome",
}


def test_each_fails_when_its_episode_does(suite, artifact):
    suite.write(SUITE)
    options = ("-W", "error", "--episode-artifact")
    over_workers = left(suite.run("-n2", *options), artifact)
    ran = suite.run(*options)
    assert left(ran, artifact) == over_workers
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED
    ran.result.assert_outcomes(passed=3, failed=11, errors=1, skipped=1, xfailed=1)
    assert {name: e.outcome for name, e in ran.episodes.items()} == {
        "test_document": "passed",
        "test_text[one]": "failed",
        "test_text[two]": "failed",
        "test_over_budget": "passed",  # decision 0002: its test fails for all that
        "test_soft_budget": "passed",
        "test_warning": "passed",
        "test_async": "failed",
        "test_case": "failed",
        "test_outcome_failed": "failed",
        "test_outcome_error": "error",
        "test_outcome_skipped": "skipped",
        "test_nothing": "error",
        "test_empty": "error",
        "test_raises": "error",
        "test_asserts": "failed",
        "test_setup": "error",
        "test_expected": "skipped",
    }
    # Every episode is there once, under the name it gave itself in the end.
    assert len(ran.results.episodes) == 17
    assert ran.results.complete
    reasons = {name: ran.episodes[name].reason for name in REASONS}
    assert reasons == REASONS
    lines = [line for line in ran.result.outlines if line.startswith(("FAILED one", "FAILED two"))]
    assert lines == ["FAILED one: polite", "FAILED two: polite"]
    expect_what_was_returned(ran)
    expect_all_in_the_artifact(json.loads(artifact.read_text()))


def left(ran, artifact):
    """Return what a run leaves behind."""
    text = ran.result.stdout.str()
    assert "LOST" not in text
    assert "the process ended before" not in text
    return {
        "exit": ran.result.ret,
        "outcomes": ran.result.parseoutcomes(),
        "results": (ran.folder / "results.json").read_text(),
        "artifact": artifact.read_text(),
        "properties": ran.properties,
        "lines": sorted(
            line for line in ran.result.outlines if line.startswith(("FAILED ", "ERROR "))
        ),
    }


def expect_what_was_returned(ran):
    document = ran.episodes["test_document"]
    assert (document.scenario_id, document.thread_id) == ("refund_flow_v1", "t-1")
    assert [(a.name, a.passed) for a in document.assertions] == [("polite", True)]
    assert [(s.name, s.value) for s in document.scores] == [("tone", 0.5)]
    assert {name: (b.used, b.limit) for name, b in document.budgets.iter_named()} == {
        "max_turns": (3, 5),
        "tool_calls": (3, 4),
        "latency_ms": (1200, 2000),
    }
    assert document.trajectory_summary.model_dump() == {
        "steps_count": 3,
        "tool_calls_count": 3,
        "note": "short",
    }
    assert (document.file, document.duration_ms is not None) == ("test_suite.py", True)
    assert ran.episodes["test_soft_budget"].scenario_id == "from_default"
    assert ran.episodes["test_over_budget"].scenario_id == "test_suite.py::test_over_budget"
    text = ran.episodes["test_text[one]"]
    assert (text.scenario_id, text.thread_id) == ("one", "t-2")
    assert text.failed_assertions[0].reason == "it shouted"
    assert ran.properties["test_document"]["agent_eval.scenario_id"] == "refund_flow_v1"


def expect_all_in_the_artifact(document):
    assert document["episodes_total"] == len(document["results"]) == 17
    assert document["episodes_passed"] == 3
    assert document["episodes_failed"] == 14
    record = {r["nodeid"].rpartition("::")[2]: r for r in document["results"]}
    assert record["test_over_budget"]["episode_passed"] is False
    assert record["test_over_budget"]["pytest_passed"] is False
    assert record["test_document"]["episode"]["scenario_id"] == "refund_flow_v1"
    assert record["test_setup"]["episode"]["outcome"] == "error"


def test_beside_fixture_marker_and_iterations_what_was_returned_is_one_episode(suite):
    suite.write("""
        import pytest
        from ci_agent_eval import llm_episode

        @pytest.mark.episode(budgets={"tool_calls": 1, "max_turns": 9}, agent="desk")
        @llm_episode()
        def test_snapshot(episode):
            with episode.turn("Hello") as turn:
                turn.tool_call("lookup")
                turn.reply("Hi", tokens=3)
            episode.check("greets", True)
            return episode.snapshot()

        @pytest.mark.episode(budgets={"tool_calls": 1})
        @llm_episode()
        def test_limit():
            return {"budgets": {"tool_calls": {"used": 2, "limit": 100}}}

        @pytest.mark.episode(iterations=3)
        @llm_episode()
        def test_again():
            return {"scenario_id": "mine", "assertions": [{"name": "a", "passed": True}]}

        @llm_episode()
        def made(): return {"outcome": "failed"}

        def test_called_by_hand_it_is_a_function(): assert made() == {"outcome": "failed"}
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=5, failed=1)
    again = [e for e in ran.results.episodes if "test_again" in e.nodeid]
    assert [(e.key[0], e.iteration) for e in again] == [("mine", n) for n in (1, 2, 3)]
    episode = ran.episodes["test_snapshot"]
    assert [turn.role for turn in episode.trajectory.turns] == ["user", "assistant"]
    assert [a.name for a in episode.assertions] == ["greets"]
    assert (episode.agent, episode.budgets.max_turns.used) == ("desk", 1)
    limit = ran.episodes["test_limit"].budgets.tool_calls
    assert (limit.used, limit.limit) == (2, 1)


def test_a_journal_is_read_without_results_just_the_same(suite):
    suite.write("""
        import os, signal
        from ci_agent_eval import llm_episode

        @llm_episode()
        def test_one(): return {"scenario_id": "mine", "outcome": "passed"}

        @llm_episode()
        def test_two(): os.kill(os.getpid(), signal.SIGKILL)
    """)
    ran = suite.run_apart()
    from ci_agent_eval.app.cli import main

    assert main(["report", "--results", str(ran.folder), "--report-dir", "judged"]) == 1
    verdict = json.loads((suite.pytester.path / "judged/verdict.json").read_text())
    text = json.dumps(verdict)
    assert "test_suite.py::test_two" in text
    assert '"mine"' in text
    assert 'test_suite.py::test_one", "scenario' not in text
    episodes = [
        json.loads(line)
        for line in (suite.pytester.path / "judged/results.json").read_text().splitlines()[1:-1]
        for line in [line.rstrip(",")]
    ]
    assert [e["scenario_id"] for e in episodes] == ["mine", "test_suite.py::test_two"]


@pytest.fixture
def artifact(suite):
    return suite.pytester.path / ".opik/pytest_episode_report.json"


def test_the_artifact_is_where_the_environment_says(suite, monkeypatch):
    suite.write("""
        from ci_agent_eval import llm_episode
        import pytest

        @pytest.mark.parametrize("n", range(6))
        @llm_episode()
        def test_one(n): return {"outcome": "passed", "scores": [{"name": "n", "value": n}]}
    """)
    monkeypatch.setenv("OPIK_PYTEST_EPISODE_ARTIFACT_ENABLED", "1")
    monkeypatch.setenv("OPIK_PYTEST_EPISODE_ARTIFACT_PATH", "out/all.json")
    suite.run()
    document = json.loads((suite.pytester.path / "out/all.json").read_text())
    assert document["episodes_passed"] == 6


def test_an_artifact_that_leads_elsewhere_or_replaces_a_file_of_others_is_refused(suite):
    suite.write("def test_one(): pass")
    (suite.pytester.path / "mine.json").write_text('{"mine": 1}')
    elsewhere = "*must be a relative path without `..`*"
    for path, said in [
        ("/x.json", elsewhere),
        ("../x.json", elsewhere),
        ("a/../../x.json", elsewhere),
        ("mine.json", "*mine.json*"),
    ]:
        ran = suite.run("--episode-artifact", f"--episode-artifact-path={path}")
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR, path
        ran.result.stderr.fnmatch_lines([said])
    assert (suite.pytester.path / "mine.json").read_text() == '{"mine": 1}'
