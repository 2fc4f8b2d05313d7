"""`@llm_unit`: as before, and its results in an experiment store."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ci_agent_eval.opik.experiments import DEFAULT_PATH, ExperimentStore
from ci_agent_eval.opik.experiments.records import LOST
from tests.opik_server import opik_server

SUITE = """
import pytest, unittest
from ci_agent_eval import llm_unit

@llm_unit()
@pytest.mark.parametrize("input, expected_output", [("a", "b"), ({"q": 1}, {"r": 2})])
def test_parametrized(input, expected_output):
    assert input == "a"

@llm_unit
def test_without_brackets(): pass

@llm_unit(expected_output_key="want", input_key="question", metadata_key="about")
@pytest.mark.parametrize("question", [1])
async def test_async(question, want=5, about={"kind": object}):
    question = want = None

class TestGroup:
    @llm_unit()
    def test_method(self, tmp_path):
        raise OSError("gone")

class TestCase(unittest.TestCase):
    @llm_unit()
    def test_case(self):
        self.assertEqual(1, 2)

@pytest.fixture
def broken(): raise ValueError("no server")

@pytest.fixture
def breaks_later():
    yield
    raise ValueError("no way down")

@llm_unit()
def test_setup(broken): pass

@llm_unit()
def test_teardown(breaks_later): pass

@llm_unit()
def test_skipped(): pytest.skip("not today")

def test_other(): pass
"""


@pytest.fixture(autouse=True)
def no_opik(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("OPIK_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    monkeypatch.setenv("OPIK_CONFIG_PATH", str(tmp_path / "none"))


def kept(pytester, path=DEFAULT_PATH):
    """The latest experiment, and its results by test name."""
    with ExperimentStore.open(pytester.path / path) as store:
        latest = store.experiments()[0]
        results = store.results(latest.uid)
    return latest, {result.nodeid.rpartition("::")[2]: result for result in results}


def test_every_kind_of_test_is_in_the_experiment_as_it_ended(suite, pytester, workers):
    pytester.makepyfile(test_suite=SUITE)
    ran = suite.run_in_process(workers, "-W", "error")
    ran.assert_outcomes(passed=5, failed=3, errors=2, skipped=1)
    experiment, results = kept(pytester)
    assert {name: (r.outcome, r.reason) for name, r in results.items()} == {
        "test_parametrized[a-b]": ("passed", None),
        "test_parametrized[input1-expected_output1]": ("failed", "assert {'q': 1} == 'a'"),
        "test_without_brackets": ("passed", None),
        "test_async[1]": ("passed", None),
        "test_method": ("error", "OSError: gone (test_suite.py:20)"),
        "test_case": ("failed", "1 != 2"),
        "test_setup": ("error", "ValueError: no server (test_suite.py:28)"),
        "test_teardown": ("error", "ValueError: no way down (test_suite.py:33)"),
        "test_skipped": ("skipped", "not today"),
    }
    assert {r.scores[0].value for r in results.values() if r.outcome == "passed"} == {1.0}
    assert {r.scores[0].value for r in results.values() if r.outcome in {"failed", "error"}} == {0}
    assert results["test_skipped"].scores == ()
    assert (experiment.dataset, experiment.sink) == ("tests", None)
    assert experiment.name == f"Test-Suite-{experiment.started}"
    assert experiment.ended is not None
    with ExperimentStore.open(pytester.path / DEFAULT_PATH) as store:
        assert [one.uid for one in store.experiments()] == [experiment.uid]


WITH_SUBTESTS = """
import pytest, unittest
from ci_agent_eval import llm_unit

@llm_unit()
def test_bad(subtests):
    for number in (1, 2):
        with subtests.test(number=number):
            assert number == 1

@llm_unit()
def test_broken(subtests):
    with subtests.test():
        raise KeyError("b-7")

@llm_unit()
def test_skipped_then(subtests):
    with subtests.test():
        assert False, "no"
    pytest.skip("not today")

@llm_unit()
def test_fine(subtests):
    with subtests.test():
        pytest.skip("no weather")
    with subtests.test():
        pass

class TestCase(unittest.TestCase):
    @llm_unit()
    def test_case(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(number, 1)
"""


def test_a_test_with_a_failed_subtest_has_failed(pytester):
    pytester.makepyfile(WITH_SUBTESTS)
    pytester.runpytest()
    _, results = kept(pytester)
    assert {name: (r.outcome, [s.value for s in r.scores]) for name, r in results.items()} == {
        "test_bad": ("failed", [0.0]),
        "test_broken": ("error", [0.0]),
        "test_skipped_then": ("failed", [0.0]),
        "test_fine": ("passed", [1.0]),
        "test_case": ("failed", [0.0]),
    }
    assert results["test_bad"].reason == "in a subtest: assert 2 == 1"
    assert results["test_broken"].reason.startswith("in a subtest: KeyError: 'b-7' (")


def test_arguments_are_linked_as_opik_links_them(suite, pytester):
    pytester.makepyfile(test_suite=SUITE)
    suite.run_in_process()
    _, results = kept(pytester)

    def fields(name):
        return results[name].content.fields()

    assert fields("test_parametrized[a-b]") == {
        "input": {"test_name": "test_suite.py::test_parametrized[a-b]", "input": "a"},
        "expected_output": {"expected_output": "b"},
    }
    assert fields("test_parametrized[input1-expected_output1]") == {
        "input": {
            "test_name": "test_suite.py::test_parametrized[input1-expected_output1]",
            "q": 1,
        },
        "expected_output": {"r": 2},
    }
    assert fields("test_async[1]") == {
        "input": {"test_name": "test_suite.py::test_async[1]", "input": 1},
        "expected_output": {"expected_output": 5},
        "metadata": {"kind": "<class 'object'>"},
    }
    assert fields("test_method") == {
        "input": {"test_name": "test_suite.py::TestGroup::test_method"}
    }


def test_the_same_content_is_the_same_item_in_every_run(suite, pytester):
    pytester.makepyfile(test_suite=SUITE)
    suite.run_in_process()
    _, first = kept(pytester)
    suite.run_in_process("-n2")
    _, second = kept(pytester)
    assert {n: r.item_id for n, r in first.items()} == {n: r.item_id for n, r in second.items()}
    assert {r.trace_id for r in first.values()}.isdisjoint(r.trace_id for r in second.values())


def test_the_end_says_where_it_is(suite, pytester):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    ran = suite.run_in_process()
    ran.stdout.fnmatch_lines(
        [
            "*= experiment =*",
            "Test-Suite-*: 1 passed",
            "kept in .agent-eval/experiments.sqlite3; agent-eval experiments show *",
        ]
    )
    assert (pytester.path / ".agent-eval/.gitignore").read_text().endswith("*\n")


WITHOUT_LLM_UNIT = """
import pytest
from ci_agent_eval import llm_episode

def test_plain(): pass

@pytest.mark.episode(evidence="none")
def test_fixture(episode): pass

@llm_episode()
def test_returning(): return {"outcome": "passed", "scores": [{"name": "tone", "value": 0.5}]}
"""


def test_without_llm_unit_there_is_no_store_unless_it_is_asked_for(suite, pytester):
    pytester.makepyfile(WITHOUT_LLM_UNIT)
    suite.run_in_process().assert_outcomes(passed=3)
    assert not (pytester.path / ".agent-eval").exists()
    suite.run_in_process("--experiment=true").assert_outcomes(passed=3)
    _, results = kept(pytester)
    assert {name: [(s.name, s.value) for s in r.scores] for name, r in results.items()} == {
        "test_fixture": [("Passed", 1.0)],
        "test_returning": [("Passed", 1.0), ("tone", 0.5)],
    }


def test_nothing_is_kept_where_only_collected_or_switched_off(suite, pytester):
    pytester.makepyfile(test_suite=SUITE)
    suite.run_in_process("--collect-only")
    suite.run_in_process("--experiment=false")
    assert not (pytester.path / ".agent-eval").exists()


@pytest.mark.parametrize("how", ["option", "environment", "ini", "opik's file"])
def test_names_come_from_each_place(suite, pytester, monkeypatch, how):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    options = []
    if how == "option":
        options = ["--experiment-dataset=d", "--experiment-prefix=p", "--experiment-score=s"]
    elif how == "environment":
        monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_DATASET_NAME", "d")
        monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_NAME_PREFIX", "p")
        monkeypatch.setenv("OPIK_PYTEST_PASSED_SCORE_NAME", "s")
    elif how == "ini":
        pytester.makeini(
            "[pytest]\nexperiment_dataset=d\nexperiment_prefix=p\nexperiment_score=s\n"
        )
    else:
        file = pytester.path / "opik.config"
        file.write_text(
            "[opik]\npytest_experiment_dataset_name=d\npytest_experiment_name_prefix=p\n"
            "pytest_passed_score_name=s\n"
        )
        monkeypatch.setenv("OPIK_CONFIG_PATH", str(file))
    suite.run_in_process(*options)
    experiment, results = kept(pytester)
    assert experiment.dataset == "d"
    assert experiment.name.startswith("p-")
    assert [score.name for score in results["test_one"].scores] == ["s"]


def test_options_stand_over_the_environment_and_that_over_the_ini_file(
    suite, pytester, monkeypatch
):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    pytester.makeini("[pytest]\nexperiment_dataset=ini\n")
    monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_DATASET_NAME", "environment")
    suite.run_in_process()
    assert kept(pytester)[0].dataset == "environment"
    suite.run_in_process("--experiment-dataset=option")
    assert kept(pytester)[0].dataset == "option"


def test_a_setting_that_means_nothing_is_said_before_anything_runs(suite, pytester, monkeypatch):
    pytester.makepyfile("def test_one(): pass")
    monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_ENABLED", "maybe")
    ran = suite.run_in_process()
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(
        ["*OPIK_PYTEST_EXPERIMENT_ENABLED: 'maybe' is neither true nor false*"]
    )


def test_secrets_do_not_reach_the_store(suite, pytester, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2-hunter2")
    pytester.makepyfile(
        """
        import os, pytest
        from ci_agent_eval import llm_unit

        @llm_unit()
        @pytest.mark.parametrize("input", [os.environ["MY_API_KEY"]])
        def test_one(input, expected_output=None, metadata={os.environ["MY_API_KEY"]: 1}):
            assert not input
        """
    )
    suite.run_in_process("--experiment-dataset=hunter2-hunter2-hunter2")
    files = list((pytester.path / ".agent-eval").iterdir())
    assert len(files) >= 2
    assert not [file for file in files if b"hunter2-hunter2" in file.read_bytes()]
    assert kept(pytester)[1]


def test_a_test_that_kills_its_process_is_there_as_an_error(pytester, workers):
    pytester.makepyfile(
        """
        import os, signal
        from ci_agent_eval import llm_unit

        @llm_unit()
        def test_a(): pass

        @llm_unit()
        def test_b(): os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    ran = pytester.runpytest_subprocess(workers)
    assert ran.ret != 0
    experiment, results = kept(pytester)
    assert {name: (r.outcome, r.reason) for name, r in results.items()} == {
        "test_a": ("passed", None),
        "test_b": ("error", LOST),
    }
    assert (experiment.ended is None) == (workers == "-n0")
    # The store is whole, and the next run goes on in it.
    pytester.runpytest_subprocess("-k", "test_a")
    assert kept(pytester)[0].uid != experiment.uid


def test_a_foreign_file_costs_the_experiment_and_no_test(suite, pytester):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    (pytester.path / "mine.txt").write_text("mine")
    ran = suite.run_in_process("--experiment-store=mine.txt")
    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(["note: *mine.txt: is no experiment store of this program*"])
    assert (pytester.path / "mine.txt").read_text() == "mine"


def test_a_rerun_replaces_the_attempt_before_it(suite, pytester):
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            runtestprotocol(item, nextitem=nextitem)
            return True
        """
    )
    pytester.makepyfile(
        """
        from ci_agent_eval import llm_unit
        times = []

        @llm_unit()
        def test_one():
            times.append(1)
            assert len(times) == 2
        """
    )
    suite.run_in_process()
    result = kept(pytester)[1]["test_one"]
    assert (result.outcome, result.attempts) == ("passed", 2)


def test_eight_runs_at_once_share_one_store(pytester):
    pytester.makepyfile(
        """
        import pytest
        from ci_agent_eval import llm_unit

        @llm_unit()
        @pytest.mark.parametrize("input", range(20))
        def test_one(input): pass
        """
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [run.wait() for run in runs] == [0] * 8
    with ExperimentStore.open(pytester.path / DEFAULT_PATH) as store:
        experiments = store.experiments()
        items = {r.item_id for e in experiments for r in store.results(e.uid)}
    assert [dict(e.outcomes) for e in experiments] == [{"passed": 20}] * 8
    assert len(items) == 20


def test_an_experiment_is_sent_to_opik_after_it_is_kept(pytester, monkeypatch):
    pytester.makepyfile(test_suite=SUITE)
    with opik_server() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        ran = pytester.runpytest_subprocess()
    ran.stdout.fnmatch_lines(["sent to Opik at 127.0.0.1:*: 1 experiment"])
    experiment, results = kept(pytester)
    assert experiment.sent is not None
    assert set(server.experiments) == {experiment.uid}
    sent = {trace["name"].rpartition("::")[2]: trace for trace in server.traces.values()}
    assert {name: t["output"]["outcome"] for name, t in sent.items()} == {
        name: r.outcome for name, r in results.items()
    }
    assert sent["test_case"]["feedback_scores"] == [
        {"name": "Passed", "value": 0.0, "reason": None}
    ]
    linked = {(link["dataset_item_id"], link["trace_id"]) for link in server.links}
    assert linked == {(r.item_id, r.trace_id) for r in results.values()}
    assert server.items[results["test_async[1]"].item_id]["expected_output"] == {
        "expected_output": 5
    }


@pytest.mark.parametrize("how", ["refuses", "hangs"])
def test_a_server_that_does_not_answer_costs_little_and_loses_nothing(pytester, monkeypatch, how):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    with opik_server() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        if how == "refuses":
            monkeypatch.setenv("OPIK_URL_OVERRIDE", "http://127.0.0.1:9/")
        server.hangs_at = "is-alive/ping"
        ran = pytester.runpytest_subprocess()
        ran.assert_outcomes(passed=1)
        assert ran.ret == 0
        ran.stdout.fnmatch_lines(
            ["note: Opik at 127.0.0.1:* does not answer (*); 1 experiment not sent*"]
        )
        experiment, _ = kept(pytester)
        assert (experiment.sink, experiment.sent) == ("opik", None)
        # The next run brings both.
        server.hangs_at = None
        monkeypatch.setenv("OPIK_URL_OVERRIDE", server.url)
        ran = pytester.runpytest_subprocess()
        ran.stdout.fnmatch_lines(["sent to Opik at 127.0.0.1:*: 2 experiments"])
        assert len(server.experiments) == 2


def test_the_server_is_left_alone_where_that_is_asked_for(suite, pytester, monkeypatch):
    pytester.makepyfile("from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass")
    with opik_server() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        suite.run_in_process("--experiment-server=false")
        assert server.calls == []
    assert kept(pytester)[0].sink is None


def test_ctrl_c_leaves_an_experiment_that_did_not_end(pytester):
    pytester.makepyfile(
        """
        import os, signal
        from ci_agent_eval import llm_unit

        @llm_unit()
        def test_one(): os.kill(os.getpid(), signal.SIGINT)
        """
    )
    ran = pytester.runpytest_subprocess()
    assert ran.ret == pytest.ExitCode.INTERRUPTED
    experiment, results = kept(pytester)
    assert experiment.ended is None
    assert results["test_one"].reason == LOST


def test_the_command_line_reads_what_the_plugin_wrote(suite, pytester):
    pytester.makepyfile(test_suite=SUITE)
    suite.run_in_process()
    command = [sys.executable, "-m", "ci_agent_eval", "experiments"]

    def said(*arguments):
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=True
        ).stdout

    (listed,) = json.loads(said("list", "--format", "json"))
    assert listed["outcomes"] == {"error": 3, "failed": 2, "passed": 3, "skipped": 1}
    shown = json.loads(said("show", "--format", "json"))
    assert shown["id"] == listed["id"]
    assert len(shown["results"]) == 9
    assert "9 unchanged" in said("compare", listed["id"], "latest")
