"""The rootdir, and with it every node id, is the same however our options are written."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.results import Results

EPISODE = """
def test_one(episode):
    assert 1 == 2
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """Make a project without configuration, whose tests are in a folder; outside lies beside it."""
    folder = pytester.mkdir("project")
    (folder / "tests").mkdir()
    (folder / "tests/test_suite.py").write_text(EPISODE)
    pytester.mkdir("outside")
    monkeypatch.chdir(folder)
    return folder


def where(report):
    """Return the node id of the only episode, and where its failed assertion stands."""
    (episode,) = Results.model_validate_json((report / "results.json").read_bytes()).episodes
    (assertion,) = episode.assertions
    return episode.nodeid, assertion.file, assertion.line


EXPECTED = ("tests/test_suite.py::test_one", "tests/test_suite.py", 3)


@pytest.mark.parametrize(
    ("workers", "paths"),
    [("-n0", ["tests"]), ("-n0", []), ("-n2", ["tests"])],
    ids=["-n0-named", "-n0-unnamed", "-n2-named"],
)
def test_the_report_folder_may_lie_outside(suite, project, workers, paths):
    report = project.parent / "outside/report"
    for _ in ("it is made", "it is there"):
        result = suite.run_in_process(workers, "--episode-report-dir", str(report), *paths)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["rootdir: *project"])
        assert where(report) == EXPECTED


def test_it_may_be_named_in_the_environment(suite, project, monkeypatch):
    report = project.parent / "outside/report"
    before = "-p no:randomly"
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{before} --episode-report-dir {report}")
    for _ in ("it is made", "it is there"):
        suite.run_in_process("tests").assert_outcomes(failed=1)
        assert where(report) == EXPECTED


@pytest.mark.parametrize(
    "option",
    ["--cassette-dir", "--shard-durations", "--experiment-prefix", "--episode-suite"],
)
def test_the_values_of_other_options_do_not_count_either(suite, project, option):
    there = project.parent / "outside/there"
    there.touch()
    suite.run_in_process(
        *(option, str(there), "--episode-report-dir=report", "tests")
    ).assert_outcomes(failed=1)
    assert where(project / "report") == EXPECTED


def test_a_folder_with_a_configuration_of_its_own_is_refused_with_a_space(suite, project):
    other = project.parent / "outside"
    (other / "pytest.ini").write_text("[pytest]\n")
    refused = suite.run_in_process("--episode-report-dir", str(other), "tests")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    sentence = (
        "--episode-report-dir: pytest took the value after the space for a path of tests, and so "
        f"read {other}/pytest.ini in place of none; write --episode-report-dir=VALUE"
    )
    assert sentence in refused.stderr.str()
    suite.run_in_process(f"--episode-report-dir={other}", "tests").assert_outcomes(failed=1)


def test_a_rootdir_that_is_named_stays(suite, project):
    report = project.parent / "outside/report"
    root = ("--rootdir", str(project.parent))
    arguments = (*root, "--episode-report-dir", str(report), "tests")
    suite.run_in_process(*arguments).assert_outcomes(failed=1)
    assert where(report)[0] == "project/tests/test_suite.py::test_one"
