"""A required episode passes only with evidence: something that the agent did, and an assertion."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.gate.report import build_report
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from ci_agent_eval.results.load import load_results

NO_TURN = "no completed turn or tool call"
NO_ASSERTION = "no assertion"
NEITHER = f"{NO_TURN} and {NO_ASSERTION}"

HEAD = """
import os, pytest
from ci_agent_eval import conversation

class Agent:
    def respond(self, message):
        return f"I heard {message}"

def talk(episode, reply="Hi"):
    with episode.turn("Hello") as turn:
        turn.reply(reply)
    return reply

"""

CASES = {
    "empty body": ("def test_it(episode): pass", NEITHER),
    "a guard that returns": (
        (
            "def test_it(episode):\n"
            "    if not os.environ.get('NO_SUCH_KEY'): return\n"
            "    assert talk(episode) == 'Hi'"
        ),
        NEITHER,
    ),
    "a turn without with": (
        "def test_it(episode):\n    episode.turn('x').reply('y')\n    assert True",
        "the turn 'x' was opened without `with`",
    ),
    "a turn without with beside others": (
        "def test_it(episode):\n    assert talk(episode)\n    episode.turn('x').reply('y')",
        "the turn 'x' was opened without `with`",
    ),
    "a turn without a reply": (
        "def test_it(episode):\n    with episode.turn('x'): pass\n    assert True",
        NO_TURN,
    ),
    "a conversation that never sends": (
        "@conversation('it', Agent)\ndef test_it(agent): pass",
        NEITHER,
    ),
    "a conversation that never asserts": (
        "@conversation('it', Agent)\ndef test_it(agent): agent.send('Hello')",
        NO_ASSERTION,
    ),
    "a helper that was not awaited": (
        (
            "async def check_greeting(episode):\n    assert talk(episode)\n"
            "async def test_it(episode): check_greeting(episode)"
        ),
        NEITHER,
    ),
    "a comparison without assert": (
        "def test_it(episode): talk(episode) == 'Bye'",
        NO_ASSERTION,
    ),
    "an assert of a fixture alone": (
        (
            "@pytest.fixture\ndef ready(): assert os.getcwd()\n"
            "def test_it(episode, ready): talk(episode)"
        ),
        NO_ASSERTION,
    ),
    "a marker alone": ("@pytest.mark.episode\ndef test_it(): assert True", NO_TURN),
    "budgets of a test that did nothing": (
        "@pytest.mark.episode(budgets={'max_turns': 2})\ndef test_it(): pass",
        NEITHER,
    ),
}


def reported(ran, **policy):
    """Report on the files of a run, as another process would."""
    found = load_results(["report"], [], root=ran.folder.parent)
    return build_report(found, suite="default", budgets=SuiteBudgets(), policy=GatePolicy(**policy))


@pytest.mark.parametrize(("test", "said"), CASES.values(), ids=CASES)
def test_an_episode_without_evidence_is_red_everywhere(suite, test, said):
    suite.write(HEAD + test)
    ran = suite.run("-W", "ignore::RuntimeWarning")
    ran.result.assert_outcomes(failed=1)
    (episode,) = ran.results.episodes
    assert episode.outcome == "error"
    assert str(episode.reason).startswith(f"no evidence: {said}")
    assert f"no evidence: {said}" in ran.result.stdout.str()
    # No share of errors that a policy allows hides it.
    report = reported(ran, max_error_rate=1.0)
    assert not report.passed
    assert [r.kind for r in report.verdict.reasons if r.scenario_id] == ["evidence", "scenario"]
    for text in (
        render_verdict(report),
        render_comment(build_report_view(report, Links())),
        render_terminal(build_report_view(report), color=False, width=1000),
    ):
        assert f"no evidence: {said}" in text


EVIDENCE = {
    "an assert": "assert talk(episode) == 'Hi'",
    "an expected exception": "talk(episode)\n    with pytest.raises(ValueError): int('x')",
    "a parametrized expectation": (
        "talk(episode)\n    expected = pytest.raises(ValueError)\n    with expected: int('x')"
    ),
    "a function that asserts": (
        "from unittest.mock import Mock\n    tool = Mock()\n    tool(talk(episode))\n"
        "    tool.assert_called_once_with('Hi')"
    ),
    "a check": "episode.check('polite', talk(episode) == 'Hi')",
    "a score with a threshold": (
        "from ci_agent_eval import check\n    talk(episode)\n    check(0.8, threshold=0.5)"
    ),
    "a budget with a measurement": "talk(episode)\n    episode.budget('max_turns', 2)",
    "a tool call": (
        "with episode.turn('x') as turn: turn.tool_call('look_up')\n    assert episode.tool_calls"
    ),
}


@pytest.mark.parametrize("body", EVIDENCE.values(), ids=EVIDENCE)
def test_a_turn_and_an_assertion_are_evidence(suite, body):
    suite.write(f"{HEAD}def test_it(episode):\n    {body}")
    ran = suite.run()
    ran.result.assert_outcomes(passed=1)
    assert ran.episodes["test_it"].evidence == "required"
    assert reported(ran).passed


def test_a_failed_assertion_is_a_failure_whatever_is_missing(suite):
    suite.write(
        "def test_asserts(episode): assert False\n"
        "def test_checks(episode): episode.check('polite', False)\n"
        "def test_spends(episode): episode.budget('emails', 1, used=2)\n"
    )
    found = {name: e.outcome for name, e in suite.run().episodes.items()}
    assert found == {"test_asserts": "failed", "test_checks": "failed", "test_spends": "passed"}


def test_only_what_is_required_needs_evidence(suite):
    suite.write("""
        import pytest

        @pytest.mark.episode("informs", gate="advisory")
        def test_informs(): pass

        @pytest.mark.episode("opted_out", evidence="none")
        def test_opted_out(): pass

        @pytest.mark.episode("skips")
        def test_skips(): pytest.skip("not today")
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=2, skipped=1)
    report = reported(ran, allow_skipped=True)
    assert report.passed
    (warning,) = (reason for reason in report.verdict.warnings if reason.kind == "evidence")
    assert warning.scenario_id == "opted_out"
    assert "1 scenario needs no evidence" in render_comment(build_report_view(report, Links()))
    assert "`opted_out`: `it needs no evidence" in render_comment(
        build_report_view(report, Links())
    )
    assert "── warning: opted_out: it needs no evidence to pass" in render_terminal(
        build_report_view(report), color=False, width=100
    )


def test_the_marker_says_what_it_cannot_read(suite):
    suite.write("""
        import pytest

        @pytest.mark.episode(evidence=False)
        def test_it(): pass
    """)
    ran = suite.run()
    (error,) = ran.session.collection_errors
    assert "evidence: Input should be 'required' or 'none'" in error.message


HELPERS = """
def greets(reply):
    assert reply == "Hi"
"""
USES_HELPERS = """
from helpers import greets

def test_it(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    greets("Hi")
"""


def test_asserts_of_a_helper_module_count_when_the_setting_names_it(suite, pytester, workers):
    pytester.makepyfile(helpers=HELPERS)
    suite.write(USES_HELPERS)
    ran = suite.run(workers)
    ran.result.assert_outcomes(failed=1)
    assert "the pytest setting `episode_assert_modules` names them" in ran.result.stdout.str()
    pytester.makeini("[pytest]\nepisode_assert_modules = helpers")
    suite.run(workers).result.assert_outcomes(passed=1)


def test_asserts_of_an_evaluation_count_for_a_test_that_calls_them(suite, pytester):
    pytester.makepyfile(hi_eval=HELPERS)
    suite.write(USES_HELPERS.replace("helpers", "hi_eval"))
    suite.run("--eval").result.assert_outcomes(passed=1)


def test_asserts_that_pytest_was_asked_to_rewrite_count(suite, pytester):
    pytester.makepyfile(helpers=HELPERS)
    suite.write(USES_HELPERS, conftest="import pytest\npytest.register_assert_rewrite('helpers')")
    suite.run().result.assert_outcomes(passed=1)


def test_asserts_of_a_fixture_s_function_count_once_the_test_calls_it(suite):
    suite.write(
        "def test_it(episode, greet):\n"
        "    with episode.turn('Hello') as turn: turn.reply('Hi')\n"
        "    greet('Hi')\n",
        conftest="import pytest\n\n@pytest.fixture\ndef greet():\n"
        "    def greets(reply):\n        assert reply == 'Hi'\n    return greets\n",
    )
    suite.run().result.assert_outcomes(passed=1)


def test_a_module_that_cannot_be_imported_is_named(suite, pytester):
    pytester.makeini("[pytest]\nepisode_assert_modules = helpars")
    suite.write("def test_it(episode): pass")
    ran = suite.run()
    ran.result.assert_outcomes(errors=1)
    ran.result.stdout.fnmatch_lines(
        ["*ini setting episode_assert_modules: 'helpars' cannot be imported (ModuleNotFound*"]
    )


@pytest.mark.parametrize("options", [(), ("--assert=plain",), ("-p", "no:assertion")])
def test_asserts_count_however_they_are_run(suite, options):
    suite.write(
        "import pytest\n"
        "def test_plain(episode):\n"
        "    with episode.turn('Hello') as turn: turn.reply('Hi')\n"
        "    assert turn\n"
        "class TestDesk:\n"
        "    @pytest.mark.parametrize('reply', ['Hi'])\n"
        "    def test_method(self, episode, reply):\n"
        "        with episode.turn('Hello') as turn: turn.reply(reply)\n"
        "        def nested(): assert reply\n"
        "        nested()\n"
    )
    suite.run_apart(*options).result.assert_outcomes(passed=2)


@pytest.mark.parametrize("options", [("--episode-concurrency=3",), ("-n2",)])
def test_each_of_several_episodes_needs_its_own(suite, options):
    suite.write("""
        import asyncio, pytest

        @pytest.mark.parametrize("asserts", [True, False, True])
        async def test_it(episode, asserts):
            with episode.turn("Hello") as turn:
                await asyncio.sleep(0)
                turn.reply("Hi")
            if asserts:
                assert turn
            await asyncio.sleep(0)
    """)
    ran = suite.run(*options)
    ran.result.assert_outcomes(passed=2, failed=1)
    assert [e.outcome for e in ran.episodes.values()].count("error") == 1


def test_a_returned_episode_is_judged_by_what_it_contains(suite):
    suite.write("""
        from ci_agent_eval import llm_episode

        @llm_episode
        def test_spends():
            return {"budgets": {"tool_calls": {"used": 3, "limit": 4}}}

        @llm_episode
        def test_claims():
            return {"outcome": "passed"}
    """)
    found = {name: e.outcome for name, e in suite.run().episodes.items()}
    assert found == {"test_spends": "passed", "test_claims": "error"}


def test_code_that_another_tool_changed_is_left_alone_and_named(suite):
    suite.write(
        "def test_it(episode):\n"
        "    with episode.turn('Hello') as turn: turn.reply('Hi')\n"
        "    assert turn\n",
        conftest="def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        function = item.function\n"
        "        function.__code__ = function.__code__.replace(co_firstlineno=77)\n",
    )
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    assert "its own asserts were not counted" in ran.result.stdout.str()
