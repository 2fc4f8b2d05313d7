"""`@llm_unit`: as before, and its results in an experiment."""

from __future__ import annotations

import os

import pytest

from ci_agent_eval.contract.results import Results
from ci_agent_eval.pytest_plugin.opik.experiments import PROCESS_ENDED
from tests.opik_server import STUB, opik_server

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

class TestSubtests(unittest.TestCase):
    @llm_unit()
    def test_sub(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(number, 1)
"""


@pytest.fixture(autouse=True)
def no_opik(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("OPIK_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    monkeypatch.setenv("OPIK_CONFIG_PATH", str(tmp_path / "none"))


KEPT = "--episode-report-dir=out"


def kept(pytester):
    """The experiment in the results, and its results by test name."""
    results = Results.model_validate_json((pytester.path / "out/results.json").read_bytes())
    experiment = results.experiment
    return experiment, {one.nodeid.rpartition("::")[2]: one for one in experiment.results}


def test_every_kind_of_test_is_in_the_experiment_as_it_ended(suite, pytester):
    pytester.makepyfile(test_suite=SUITE)
    ran = suite.run_in_process(KEPT, "-W", "error")
    ran.stdout.fnmatch_lines(["*= experiment =*", "Test-Suite-*: *", "kept in out/results.json"])
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
        "test_bad": ("failed", "in a subtest: assert 2 == 1"),
        "test_broken": ("error", "in a subtest: KeyError: 'b-7' (test_suite.py:55)"),
        "test_skipped_then": ("failed", "in a subtest: no"),
        "test_fine": ("passed", None),
        "test_sub": ("failed", "in a subtest: 2 != 1"),
    }
    assert {r.scores[0].value for r in results.values() if r.outcome == "passed"} == {1.0}
    assert {r.scores[0].value for r in results.values() if r.outcome in {"failed", "error"}} == {0}
    assert results["test_skipped"].scores == ()
    assert experiment.dataset == "tests"
    assert experiment.name.startswith("Test-Suite-20")
    expect_arguments_linked_as_opik_links_them(results)
    nodeids = [result.nodeid for result in experiment.results]
    assert nodeids == sorted(nodeids)


def expect_arguments_linked_as_opik_links_them(results):
    def fields(name):
        return results[name].item.fields

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


ONE = "from ci_agent_eval import llm_unit\n@llm_unit()\ndef test_one(): pass"


WITHOUT_LLM_UNIT = """
import pytest
from ci_agent_eval import llm_episode

def test_plain(): pass

@pytest.mark.episode(evidence="none")
def test_fixture(episode): pass

@llm_episode()
def test_returning(): return {"outcome": "passed", "scores": [{"name": "tone", "value": 0.5}]}
"""


def test_without_llm_unit_there_is_no_experiment_unless_it_is_asked_for(suite, pytester):
    pytester.makepyfile(WITHOUT_LLM_UNIT)
    ran = suite.run_in_process(KEPT)
    ran.assert_outcomes(passed=3)
    ran.stdout.no_fnmatch_line("*= experiment =*")
    assert b'"experiment"' not in (pytester.path / "out/results.json").read_bytes()
    suite.run_in_process(KEPT, "--experiment=true").assert_outcomes(passed=3)
    _, results = kept(pytester)
    assert {name: [(s.name, s.value) for s in r.scores] for name, r in results.items()} == {
        "test_fixture": [("Passed", 1.0)],
        "test_returning": [("Passed", 1.0), ("tone", 0.5)],
    }


def test_names_come_from_each_place_and_the_nearest_stands(suite, pytester, monkeypatch):
    pytester.makepyfile(ONE)

    def expect(name, *options):
        suite.run_in_process(KEPT, *options)
        experiment, results = kept(pytester)
        assert experiment.dataset == f"{name}-d"
        assert experiment.name.startswith(f"{name}-p-")
        assert [score.name for score in results["test_one"].scores] == [f"{name}-s"]

    file = pytester.path / "opik.config"
    file.write_text(
        "[opik]\npytest_experiment_dataset_name=file-d\npytest_experiment_name_prefix=file-p\n"
        "pytest_passed_score_name=file-s\n"
    )
    monkeypatch.setenv("OPIK_CONFIG_PATH", str(file))
    expect("file")
    monkeypatch.setenv("OPIK_CONFIG_PATH", str(pytester.path / "none"))
    pytester.makeini(
        "[pytest]\nexperiment_dataset=ini-d\nexperiment_prefix=ini-p\nexperiment_score=ini-s\n"
    )
    expect("ini")
    monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_DATASET_NAME", "environment-d")
    monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_NAME_PREFIX", "environment-p")
    monkeypatch.setenv("OPIK_PYTEST_PASSED_SCORE_NAME", "environment-s")
    expect("environment")
    names = [f"--experiment-{n}=option-{n[0]}" for n in ("dataset", "prefix", "score")]
    expect("option", *names)


def test_a_setting_that_means_nothing_is_said_before_anything_runs(suite, pytester, monkeypatch):
    pytester.makepyfile("def test_one(): pass")
    monkeypatch.setenv("OPIK_PYTEST_EXPERIMENT_ENABLED", "maybe")
    ran = suite.run_in_process()
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(
        ["*OPIK_PYTEST_EXPERIMENT_ENABLED: 'maybe' is neither true nor false*"]
    )


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
    suite.run_in_process(KEPT)
    assert kept(pytester)[1]["test_one"].outcome == "passed"


SECRET = """
import os

@llm_unit()
@pytest.mark.parametrize("input", [os.environ["MY_API_KEY"]])
def test_secret(input, expected_output=None, metadata={os.environ["MY_API_KEY"]: 1}):
    assert not input
"""


@pytest.fixture
def server(monkeypatch):
    with opik_server() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(STUB)
        yield server


def test_an_experiment_is_sent_to_opik_without_secrets(pytester, monkeypatch, server):
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2-hunter2")
    pytester.makepyfile(test_suite=SUITE + SECRET)
    secret = "--experiment-dataset=hunter2-hunter2-hunter2"
    ran = pytester.runpytest_subprocess(KEPT, "-n2", secret)
    ran.stdout.fnmatch_lines(["sent to Opik at 127.0.0.1:*"])
    experiment, results = kept(pytester)
    assert [one["name"] for one in server.experiments.values()] == [experiment.name]
    sent = {trace["name"].rpartition("::")[2]: trace for trace in server.traces.values()}
    assert {name: t["output"]["outcome"] for name, t in sent.items()} == {
        name: r.outcome for name, r in results.items()
    }
    assert sent["test_case"]["feedback_scores"] == [
        {"name": "Passed", "value": 0.0, "reason": None}
    ]
    linked = {link["trace_id"]: server.items[link["dataset_item_id"]] for link in server.links}
    items = {name: linked[trace["id"]] for name, trace in sent.items()}
    assert {n: {k: v for k, v in i.items() if k != "id"} for n, i in items.items()} == {
        name: result.item.fields for name, result in results.items()
    }
    files = [file for file in (pytester.path / "out").rglob("*") if file.is_file()]
    assert not [file for file in files if b"hunter2-hunter2" in file.read_bytes()]
    assert "hunter2-hunter2" not in repr((server.items, server.experiments, server.traces))


def test_a_server_that_does_not_answer_changes_no_result(pytester, monkeypatch, server):
    pytester.makepyfile(ONE)
    monkeypatch.setenv("OPIK_URL_OVERRIDE", "http://127.0.0.1:9/")
    ran = pytester.runpytest_subprocess(KEPT)
    ran.assert_outcomes(passed=1)
    assert ran.ret == 0
    ran.stdout.fnmatch_lines(["note: not sent: Opik at 127.0.0.1:* does not answer (*)"])
    assert kept(pytester)[1]["test_one"].outcome == "passed"


def test_the_server_is_left_alone_where_that_is_asked_for_or_pytest_did_not_finish(
    suite, pytester, server
):
    pytester.makepyfile(ONE)
    suite.run_in_process(KEPT, "--experiment-server=false")
    assert kept(pytester)[1]
    pytester.makepyfile(ONE.replace("pass", "__import__('pytest').exit('enough')"))
    ran = suite.run_in_process(KEPT)
    assert ran.ret == pytest.ExitCode.INTERRUPTED
    ran.stdout.fnmatch_lines(["note: not sent to Opik at *: pytest did not finish"])
    assert kept(pytester)[1]["test_one"].reason == PROCESS_ENDED
    assert server.calls == []


def test_nothing_is_kept_where_only_collected_switched_off_or_without_a_folder(suite, pytester):
    pytester.makepyfile(ONE)
    suite.run_in_process("--collect-only").stdout.no_fnmatch_line("*= experiment =*")
    suite.run_in_process(KEPT, "--experiment=false").stdout.no_fnmatch_line("*= experiment =*")
    assert b'"experiment"' not in (pytester.path / "out/results.json").read_bytes()
    suite.run_in_process().stdout.fnmatch_lines(
        [
            "*= experiment =*",
            "Test-Suite-*: 1 passed",
            "note: it is not kept; --episode-report-dir=DIR keeps it in DIR/results.json",
        ]
    )
