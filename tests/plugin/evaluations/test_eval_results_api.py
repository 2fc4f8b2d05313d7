"""`EvalResults.generate_report()`: of the session, and of a report folder."""

from __future__ import annotations

import pytest

from ci_agent_eval import EvalResults
from ci_agent_eval.errors import InputError

CONFTEST = """
    from ci_agent_eval import EvalResults

    def pytest_sessionfinish(session):
        if hasattr(session.config, "workerinput"):
            return
        report = EvalResults.generateReport()
        print("passed:", report.passed_conversations, "of", report.total_conversations)
        print("rates:", report.pass_rate, report.average_score)
        print("names:", [one.name for one in report.conversations])
"""
SUITE = """
    import pytest

    @pytest.mark.episode(scenario_id="Create")
    def test_create():
        assert "A" in "A -> B"
        assert "C" in "A -> B"

    @pytest.mark.episode(scenario_id="Extend")
    def test_extend():
        assert "B" in "A -> B"
"""


@pytest.mark.parametrize("options", [(), ("-n2",)])
def test_the_report_of_a_session_when_it_has_ended(pytester, options):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(diagram_eval=SUITE)
    result = pytester.runpytest_inprocess("-s", "--eval", *options)
    result.stdout.fnmatch_lines(
        ["*passed: 1 of 2", "rates: 50.0 0.75", "names: ?'Create', 'Extend'?"]
    )


def test_the_report_of_a_folder(pytester):
    pytester.makepyfile(diagram_eval=SUITE)
    pytester.runpytest_inprocess("--eval", "--episode-report-dir=out")
    report = EvalResults.generate_report(pytester.path / "out")
    assert (report.total_conversations, report.pass_rate, report.average_score) == (2, 50.0, 0.75)
    assert report.model_dump(by_alias=True)["passedConversations"] == 1


def test_a_folder_without_a_report_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"eval-results\.json: cannot be read \(No such file"):
        EvalResults.generate_report(tmp_path)
    (tmp_path / "eval-results.json").write_text("{}")
    with pytest.raises(InputError, match=r"eval-results\.json: totalConversations: is required; "):
        EvalResults.generate_report(tmp_path)


def test_a_session_without_evaluations_has_no_report(pytester):
    pytester.makepyfile(
        """
        import pytest
        from ci_agent_eval import EvalResults

        def test_none():
            EvalResults.generate_report()
        """
    )
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["*EvalResults.generate_report(): no pytest session with eval*"])


def test_a_session_does_not_have_the_report_of_an_earlier_one(pytester):
    pytester.makepyfile(
        diagram_eval=SUITE,
        test_plain="def test_plain(): pass",
        main="""
            import pytest
            from ci_agent_eval import EvalResults

            pytest.main(["--eval", "diagram_eval.py"])
            print("first:", EvalResults.generate_report().total_conversations)
            pytest.main(["test_plain.py"])
            EvalResults.generate_report()
        """,
    )
    result = pytester.runpython("main.py")
    result.stdout.fnmatch_lines(["first: 2"])
    result.stderr.fnmatch_lines(["*InputError: *no pytest session with evaluations*"])
