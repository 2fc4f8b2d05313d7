"""A required episode passes only with evidence: something that the agent did, and an assertion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.gate.report import build_report
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from ci_agent_eval.results.load import load_results

FORMS = Path(__file__).parent
"""Folder of the suites whose tests show one form of an assertion each."""

NO_TURN = "no completed turn or tool call"
NO_ASSERTION = "no assertion"
NEITHER = f"{NO_TURN} and {NO_ASSERTION}"

HEAD = """
import os, pytest
from ci_agent_eval import conversation, llm_episode

class Agent:
    def respond(self, message):
        return f"I heard {message}"

def talk(episode, reply="Hi"):
    with episode.turn("Hello") as turn:
        turn.reply(reply)
    return reply

"""


def reported(ran, **policy):
    """Report on the files of a run, as another process would."""
    found = load_results(["report"], [], root=ran.folder.parent)
    return build_report(found, suite="default", budgets=SuiteBudgets(), policy=GatePolicy(**policy))


OPEN = "the turn 'x' was opened without `with`"
WITHOUT = {
    "empty": NEITHER,
    "turn_without_with": OPEN,
    "turn_without_with_beside_others": OPEN,
    "turn_without_reply": NO_TURN,
    "conversation_that_never_sends": NEITHER,
    "conversation_that_never_asserts": NO_ASSERTION,
    "helper_that_was_not_awaited": NEITHER,
    "comparison_without_assert": NO_ASSERTION,
    "assert_of_a_fixture_alone": NO_ASSERTION,
    "marker_alone": NO_TURN,
    "budgets_alone": NEITHER,
}
TESTS = """
def test_empty(episode): pass
def test_turn_without_with(episode):
    episode.turn('x').reply('y')
    assert episode
def test_turn_without_with_beside_others(episode):
    assert talk(episode)
    episode.turn('x').reply('y')
def test_turn_without_reply(episode):
    with episode.turn('x'): pass
    assert episode
@conversation('silent', Agent)
def test_conversation_that_never_sends(agent): pass
@conversation('asserts nothing', Agent)
def test_conversation_that_never_asserts(agent): agent.send('Hello')
async def check_greeting(episode):
    assert talk(episode)
async def test_helper_that_was_not_awaited(episode): check_greeting(episode)
def test_comparison_without_assert(episode): talk(episode) == 'Bye'
@pytest.fixture
def ready(): assert os.getcwd()
def test_assert_of_a_fixture_alone(episode, ready): talk(episode)
@pytest.mark.episode
def test_marker_alone(): assert os.sep
@pytest.mark.episode(budgets={'max_turns': 2})
def test_budgets_alone(): pass

def test_failed_assert(episode): assert False
def test_failed_check(episode): episode.check('polite', False)
@llm_episode
def test_claims(): return {"outcome": "passed"}
"""


def test_an_episode_without_evidence_is_red_everywhere(suite):
    suite.write(HEAD + TESTS)
    ran = suite.run("-W", "ignore::RuntimeWarning", "--deselect=test_suite.py::test_claims")
    ran.result.assert_outcomes(failed=len(WITHOUT) + 2, deselected=1)
    # No share of errors that a policy allows hides it.
    report = reported(ran, max_error_rate=1.0)
    assert not report.passed
    shown = (
        ran.result.stdout.str(),
        render_verdict(report),
        render_comment(build_report_view(report, Links())),
        render_terminal(build_report_view(report), color=False, width=1000),
    )
    for name, said in WITHOUT.items():
        episode = ran.episodes[f"test_{name}"]
        assert episode.outcome == "error", name
        assert str(episode.reason).startswith(f"no evidence: {said}")
        kinds = [r.kind for r in report.verdict.reasons if r.scenario_id == episode.scenario_id]
        assert kinds == ["evidence", "scenario"]
        assert all(f"no evidence: {said}" in text for text in shown)
    # A failed assertion is a failure whatever is missing.
    assert {ran.episodes[f"test_failed_{what}"].outcome for what in ("assert", "check")} == {
        "failed"
    }
    (claims,) = suite.run("-k", "claims").results.episodes
    assert claims.outcome == "error"


EVIDENCE = """
from unittest.mock import Mock
from ci_agent_eval import check

def test_assert(episode): assert talk(episode) == 'Hi'
def test_expected_exception(episode):
    talk(episode)
    with pytest.raises(ValueError): int('x')
def test_parametrized_expectation(episode):
    talk(episode)
    expected = pytest.raises(ValueError)
    with expected: int('x')
def test_function_that_asserts(episode):
    tool = Mock()
    tool(talk(episode))
    tool.assert_called_once_with('Hi')
def test_check(episode): episode.check('polite', talk(episode) == 'Hi')
def test_score_with_a_threshold(episode):
    talk(episode)
    check(0.8, threshold=0.5)
def test_measured_budget(episode):
    talk(episode)
    episode.budget('max_turns', 2)
def test_spends(episode): episode.budget('emails', 1, used=2)
def test_tool_call(episode):
    with episode.turn('x') as turn: turn.tool_call('look_up')
    assert episode.tool_calls
@llm_episode
def test_returned_budget(): return {"budgets": {"tool_calls": {"used": 3, "limit": 4}}}
"""


def test_a_turn_and_an_assertion_are_evidence(suite):
    suite.write(HEAD + EVIDENCE)
    ran = suite.run()
    episodes = ran.episodes
    assert [e.outcome for e in episodes.values()] == ["passed"] * 10
    assert episodes.pop("test_returned_budget").evidence is None
    assert {e.evidence for e in episodes.values()} == {"required"}
    suite.run("--deselect=test_suite.py::test_spends").result.assert_outcomes(
        passed=9, deselected=1
    )
    assert reported(ran).passed


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


def test_asserts_of_a_helper_module_count_when_the_setting_names_it(suite, pytester):
    pytester.makepyfile(helpers=HELPERS)
    suite.write(USES_HELPERS)
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    said = "asserts of helpers.py were not counted"
    remedy = "put pytest.register_assert_rewrite('helpers') into conftest.py"
    (episode,) = ran.results.episodes
    assert said in episode.reason
    assert remedy in episode.reason
    pytester.makeini("[pytest]\nepisode_assert_modules = helpers")
    suite.run().result.assert_outcomes(passed=1)


def test_asserts_of_evaluations_of_rewritten_modules_and_of_functions_of_fixtures_count(
    suite, pytester
):
    pytester.makepyfile(helpers=HELPERS, hi_eval=HELPERS)
    suite.write(
        USES_HELPERS
        + """
def test_evaluation(episode):
    import hi_eval
    with episode.turn('Hello') as turn: turn.reply('Hi')
    hi_eval.greets("Hi")

def test_fixture(episode, greet):
    with episode.turn('Hello') as turn: turn.reply('Hi')
    greet('Hi')
""",
        conftest="""
import pytest
pytest.register_assert_rewrite('helpers')

@pytest.fixture
def greet():
    def greets(reply):
        assert reply == 'Hi'
    return greets
""",
    )
    suite.run("--eval").result.assert_outcomes(passed=3)


PLAIN = """
import pytest

def test_plain(episode):
    with episode.turn('Hello') as turn: turn.reply('Hi')
    assert turn

class TestDesk:
    @pytest.mark.parametrize('reply', ['Hi'])
    def test_method(self, episode, reply):
        with episode.turn('Hello') as turn: turn.reply(reply)
        def nested(): assert reply
        nested()
"""


CACHED = """
import pytest

@pytest.mark.episode
def test_it(request):
    if request.config.pluginmanager.has_plugin("ci_agent_eval"):
        episode = request.getfixturevalue("episode")
        with episode.turn('Hello') as turn: turn.reply('Hi')
    assert request
"""


def test_bytecode_of_runs_with_and_without_the_plugin_is_kept_apart(pytester, monkeypatch):
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(test_suite=CACHED)
    for plugin in ("no:ci_agent_eval", "ci_agent_eval"):
        arguments = ["-p", plugin, "-W", "ignore"]
        pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)
    names = {path.name.partition(".")[0] for path in pytester.path.glob("__pycache__/test_suite*")}
    assert names == {"test_suite", "test_suite-agent-eval-3"}


@pytest.mark.parametrize("options", [("--assert=plain",), ("-p", "no:assertion")])
def test_asserts_that_pytest_does_not_rewrite_are_named(suite, options):
    suite.write(PLAIN)
    ran = suite.run_apart(*options)
    ran.result.assert_outcomes(failed=2)
    for episode in ran.results.episodes:
        assert "asserts of test_suite.py were not counted, for pytest did not" in episode.reason


def test_assertions_of_libraries_are_evidence_and_functions_named_like_them_are_not(suite):
    suite.write((FORMS / "assertions_of_libraries.txt").read_text(), conftest="")
    suite.pytester.makepyfile(helpers="def verify_reply(reply): return reply == 'Bye'")
    ran = suite.run("-W", "default")
    expected = {name: "error" if name.endswith("__no") else "passed" for name in ran.episodes}
    assert {name: episode.outcome for name, episode in ran.episodes.items()} == expected
    assert len(expected) == 18


def test_asserts_that_are_always_true_are_no_evidence(suite):
    suite.write((FORMS / "always_true_asserts.txt").read_text(), conftest="")
    ran = suite.run("-W", "default")
    ends = {"fails": "failed", "no": "error"}
    expected = {name: ends.get(name.partition("__")[2], "passed") for name in ran.episodes}
    assert {name: episode.outcome for name, episode in ran.episodes.items()} == expected
    assert len(expected) == 26
    reasons = {name: str(episode.reason) for name, episode in ran.episodes.items()}
    awaited = "asserted an object of type coroutine, which is always true; write `assert await ...`"
    assert reasons["test_coroutine__fails"] == awaited
    assert "type generator, which is always true; use all(...)" in reasons["test_generator__fails"]
    said = reasons["test_text__no"]
    assert "no assertion; assert something" in said
    assert re.search(r"; test_suite.py:\d+: assert of a literal: it is always true and no ", said)
    ran.result.stdout.fnmatch_lines(["*PytestWarning: assert of the function clear, which is not*"])


def test_an_evaluation_records_a_coroutine_as_a_failure(suite):
    suite.pytester.makepyfile(
        hi_eval="async def is_polite(): return True\n"
        "def test_it(episode):\n    assert is_polite()\n    assert episode\n"
    )
    (episode,) = suite.run("--eval", "hi_eval.py").results.episodes
    assert [(a.name, a.passed) for a in episode.assertions] == [
        ("is_polite()", False),
        ("episode", True),
    ]


UNITTEST = """
class Desk{kind}(unittest.{kind}):
    @pytest.fixture(autouse=True)
    def greeted(self, episode):
        with episode.turn("Hello") as turn:
            turn.reply("Hi")
    {prefix}def test_asserts_{kind}(self): self.assertEqual("Hi", "Bye")
    {prefix}def test_fails_{kind}(self): self.fail("by hand")
    {prefix}def test_raises_{kind}(self): raise KeyError("x")
    {prefix}def test_skips_{kind}(self): self.skipTest("later")
    {prefix}def test_nothing_{kind}(self): pass
"""


def test_a_unittest_with_another_end_is_not_accused_of_missing_evidence(suite):
    kinds = {"TestCase": "", "IsolatedAsyncioTestCase": "async "}
    classes = [UNITTEST.format(kind=kind, prefix=prefix) for kind, prefix in kinds.items()]
    suite.write("import pytest, unittest\n" + "".join(classes), conftest="")
    episodes = suite.run().episodes
    for kind in kinds:
        found = {name: e for name, e in episodes.items() if name.endswith(f"_{kind}")}
        assert [(e.outcome, e.missing_evidence) for _, e in sorted(found.items())] == [
            ("failed", ()),
            ("failed", ()),
            ("error", ("assertion",)),
            ("error", ()),
            ("skipped", ()),
        ]


def test_messages_and_a_project_s_own_hook_are_as_before(suite):
    suite.write(
        "def test_it(episode):\n    with episode.turn('x') as turn: turn.reply('y')\n"
        "    assert turn.message, 'a message'\ndef test_other(): one = [1]; assert one == [1]\n"
        "def test_percent(episode): assert 0, '100% of %s, 50%%'\n",
        conftest="def pytest_assertion_pass(item, lineno, orig, expl):\n"
        "    print('passed', item.name, lineno, orig, expl.partition(' ')[0])\n",
    )
    shown = suite.run("-s").result.stdout.str()
    assert "passed test_" not in shown
    assert "AssertionError: 100% of %s, 50%%" in shown
    suite.pytester.makeini("[pytest]\nenable_assertion_pass_hook = true")
    ran = suite.run("-s")
    ran.result.assert_outcomes(passed=2, failed=1)
    ran.result.stdout.fnmatch_lines(
        ["*passed test_it 3 turn.message *", "*passed test_other 4 one == [[]1[]] [[]1[]]"]
    )


def test_each_of_several_episodes_needs_its_own(suite):
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
    ran = suite.run("--episode-concurrency=3")
    ran.result.assert_outcomes(passed=2, failed=1)
    assert [e.outcome for e in ran.episodes.values()].count("error") == 1
