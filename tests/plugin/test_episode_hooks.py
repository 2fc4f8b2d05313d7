"""Hooks of an episode, and an error after an assert that failed."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

# Hooks of other plugins: columns for the reports, and sinks.


TESTS = """
    import pytest

    @pytest.fixture
    def broken():
        yield
        raise RuntimeError("teardown")

    @pytest.mark.episode(scenario_id="one")
    def test_one(episode):
        with episode.turn("hi") as turn:
            turn.reply("hello there")
        episode.check("polite", True)

    @pytest.mark.episode(scenario_id="two")
    def test_two(episode, broken):
        with episode.turn("hi") as turn:
            turn.reply("no")
        episode.check("polite", False)

    def test_plain():
        pass
"""

HOOKS = """
    import json
    from pathlib import Path

    def pytest_agent_eval_columns(item, episode):
        return {"words": len(episode.trajectory.turns[-1].content.split()), "item": item.name}

    def pytest_agent_eval_episode(episode):
        line = [episode.scenario_id, episode.outcome, episode.reason, episode.columns]
        with Path("sink.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\\n")
"""


def conftest(hooks=HOOKS):
    return SCRIPTED_CLOCK + "\n" + "\n".join(line[4:] for line in hooks.splitlines())


def test_each_ended_episode_has_its_columns_and_reaches_the_sink(suite):
    suite.write(TESTS, conftest())
    ran = suite.run("-n2", "--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2, failed=1, errors=1)
    columns = {name: one.columns for name, one in ran.episodes.items()}
    assert columns == {
        "test_one": {"words": 2, "item": "test_one"},
        "test_two": {"words": 1, "item": "test_two"},
    }
    lines = (suite.pytester.path / "sink.jsonl").read_text().splitlines()
    one, two = sorted(map(json.loads, lines))
    assert one == ["one", "passed", None, columns["test_one"]]
    assert (two[:2], two[3]) == (["two", "failed"], columns["test_two"])
    assert "; then in teardown: RuntimeError: teardown" in two[2]
    ran.result.stdout.fnmatch_lines(["*columns    words 1 · item test_two"])


RAISING = """
    def pytest_agent_eval_{hook}(episode):
        raise OSError("no server")
"""


@pytest.mark.parametrize("hook", ["columns", "episode"])
def test_a_hook_that_fails_is_an_error_of_the_episode_which_is_kept(suite, hook):
    suite.write(TESTS, conftest(RAISING.replace("{hook}", hook)))
    ran = suite.run()
    ran.result.assert_outcomes(passed=2, failed=1, errors=2)
    episodes = ran.episodes
    problem = f"the hook pytest_agent_eval_{hook} failed (conftest.py:"
    assert episodes["test_one"].outcome == "error"
    assert episodes["test_one"].reason.startswith(f"in teardown: {problem}")
    assert episodes["test_one"].reason.endswith("): OSError: no server; correct it")
    assert episodes["test_one"].trajectory.turns[-1].content == "hello there"
    assert episodes["test_two"].outcome == "failed"
    assert problem in episodes["test_two"].reason
    ran.result.stdout.fnmatch_lines([f"*{problem}*"])


@pytest.mark.parametrize(
    ("hook", "stop"),
    [("columns", "pytest.exit('enough', returncode=2)"), ("episode", "raise KeyboardInterrupt")],
)
def test_a_hook_that_stops_the_run_loses_no_teardown_error(suite, hook, stop):
    lines = f"    import pytest\n\n    def pytest_agent_eval_{hook}():\n        {stop}\n"
    suite.write(TESTS.replace("False", "True"), conftest(lines))
    ran = (suite.run if hook == "columns" else suite.run_apart)("-k", "two")
    assert ran.result.ret == 2
    assert ran.episodes["test_two"].outcome == "error"
    assert ran.episodes["test_two"].reason.startswith("in teardown: RuntimeError: teardown (")


INVALID = [
    ("3", "ValueError: it returned a int, not a mapping"),
    ("{3: 4}", "ValueError: the name 3 is not a text of 1 to 40 characters"),
    ("{'a' * 41: 4}", "is not a text of 1 to 40 characters"),
    ("{'a\\nb': 4}", "the name 'a\\nb' must be one line of text"),
    ("{' ': 4}", "ValueError: the name ' ' must be one line of text"),
    ("{'a': None}", "ValueError: the column 'a' must be a text, a boolean, a finite number"),
    ("{'a': float('nan')}", "ValueError: the column 'a' must be a text, a boolean, a finite"),
    ("{'a': 10 ** 400}", "ValueError: the column 'a' must be a text, a boolean, a finite"),
    ("{'a\\ud800': 1, 'a\\ufffd': 2}", "is returned twice; rename one"),
    ("{f'a{n}': 1 for n in range(21)}", "ValueError: there are 21 columns; return at most 20"),
    ("item.session.xfail", "AttributeError: "),
    ("__import__('pytest').fail('no')", "Failed: no"),
]


def test_invalid_columns_are_an_error(suite):
    suite.write(
        "".join(
            f"""
def test_{number}(episode):
    with episode.turn("hi") as turn:
        turn.reply("hello there")
    episode.check("polite", True)
"""
            for number, _ in enumerate(INVALID)
        ),
        SCRIPTED_CLOCK
        + "\ndef pytest_agent_eval_columns(item):\n"
        + "".join(
            f"    if item.name == 'test_{number}': return {returned}\n"
            for number, (returned, _) in enumerate(INVALID)
        ),
    )
    episodes = suite.run().episodes
    for number, (_, problem) in enumerate(INVALID):
        assert problem in episodes[f"test_{number}"].reason


def test_the_text_of_a_hook_s_error_is_short_and_no_column_is_returned_twice(suite):
    hook = """
    pytest_plugins = ["other"]

    def pytest_agent_eval_columns(item):
        return {"words": 1} if "plain" in item.name else None

    def pytest_agent_eval_episode(episode):
        if episode.scenario_id == "one":
            raise ValueError("x" * 5000)
        if episode.scenario_id == "two":
            raise type("Unreadable", (Exception,), {"__str__": lambda self: 3})()
    """
    suite.pytester.makepyfile(
        other="""
        def pytest_agent_eval_columns(item):
            return {"words": 2} if "plain" in item.name else None
        """
    )
    suite.write(TESTS.replace("test_plain():", "test_plain(episode):"), conftest(hook))
    episodes = suite.run().episodes
    reasons = [episodes[name].reason for name in ("test_one", "test_two")]
    assert reasons[0].endswith("…; correct it")
    assert reasons[1].endswith(": Unreadable; correct it")
    assert max(map(len, reasons)) < 2200
    twice = "ValueError: the column 'words' is returned twice; rename one"
    assert twice in episodes["test_plain"].reason


def test_columns_are_shown_without_secrets_and_hostile_text_also_of_evaluations(suite, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2-hunter2-hunter2")
    hook = """
    def pytest_agent_eval_columns(item):
        if "poem" in item.name:
            return {"lines": 3, "ok": True}
        if "other" in item.name:
            return None
        secret = "hunter2-hunter2-hunter2"
        cut = "x" * 190 + secret
        return {"key": secret, "password": "open sesame", "cut": cut, "mark": "\\x1b[31m\\ud800", "long": "x" * 999}
    """
    suite.write(TESTS, conftest(hook))
    suite.pytester.makepyfile(
        poem_eval="""
        def test_poem(): assert "rose"
        def test_other(): assert "rose"
        """
    )
    ran = suite.run("--eval")
    ran.result.stdout.fnmatch_lines(
        [
            "conversation * duration  lines   ok",
            "*test_other* -    -",
            "*test_poem* 3  yes",
        ]
    )
    columns = ran.episodes["test_two"].columns
    assert columns["key"] == columns["password"] == "[redacted]"
    assert columns["cut"] == "x" * 190 + "[redacted]"
    assert columns["mark"] == "\x1b[31m\ufffd"
    assert columns["long"] == "x" * 200
    shown = ran.result.stdout.str()
    assert "hunter2" not in shown.partition("columns ")[2]
    assert "\x1b[31m" not in shown


# An exception after a failed assert: the episode is failed, as in evaluations.


HELPERS = """\
def check_empty(calls):
    try:
        assert not calls, "not empty"
    finally:
        calls[5]

def convert(calls):
    try:
        assert not calls, "not empty"
    except AssertionError as error:
        raise KeyError("b") from error
"""

AFTER_AN_ASSERT = """\
import asyncio, pytest
from ci_agent_eval import check
from helpers import check_empty, convert

pytestmark = pytest.mark.episode(evidence="none")

def test_cleanup():
    try:
        assert not [1], "not empty"
    finally:
        [][0]

def test_helper():
    check_empty([1])

def test_converted():
    convert([1])

def test_without_its_context():
    try:
        assert not [1], "not empty"
    except AssertionError:
        raise KeyError("b") from None

def test_by_hand():
    try:
        pytest.fail("not empty")
    finally:
        [][0]

def test_infrastructure_error_of_ours(episode):
    try:
        assert not [1], "not empty"
    finally:
        episode.check("", object())

def test_group():
    inner = ExceptionGroup("inner", [KeyError("b"), AssertionError("not empty")])
    raise ExceptionGroup("outer", [OSError("c"), inner])

async def test_tasks():
    started = asyncio.Event()

    async def fail():
        await started.wait()
        assert not [1], "not empty"

    async def break_down():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("closed")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        group.create_task(break_down())

async def test_timeout():
    async with asyncio.timeout(0):
        try:
            assert not [1], "not empty"
        finally:
            await asyncio.Event().wait()
"""

CHECKED = """\
from ci_agent_eval import check

def test_check(episode):
    try:
        check(False, "polite")
    finally:
        [][0]

def test_subtest(episode, subtests):
    with subtests.test("inner"):
        try:
            assert not [1], "not empty"
        finally:
            [][0]
"""

HANDLED = """\
import pytest
from fussy import parse

pytestmark = pytest.mark.episode(evidence="none")

def test_expected_assert():
    with pytest.raises(AssertionError):
        assert not [1]
    raise ConnectionError("refused")

def test_retried():
    for _ in range(2):
        try:
            assert not [1]
        except AssertionError:
            pass
    raise ConnectionError("refused")

def test_inside_of_a_library():
    parse("{")

def test_expected_error():
    with pytest.raises(IndexError):
        try:
            assert not [1]
        finally:
            [][0]
"""

FUSSY = """\
def parse(text):
    try:
        assert text != "{"
    except AssertionError:
        raise ValueError("no JSON")
"""


def test_an_exception_after_a_failed_assert_is_no_infrastructure_error(suite, pytester):
    pytester.makepyfile(helpers=HELPERS)
    suite.write(AFTER_AN_ASSERT)
    episodes = suite.run().episodes
    assert {name: e.outcome for name, e in episodes.items()} == dict.fromkeys(episodes, "failed")
    reasons = {name: e.reason.partition("; then ") for name, e in episodes.items()}
    assert {name: reason for name, (reason, _, _) in reasons.items()} == dict.fromkeys(
        episodes, "not empty"
    )
    assert reasons["test_cleanup"][2].startswith("IndexError: list index out of range (test_")
    assert (
        reasons["test_converted"][2] == "KeyError: 'b' (helpers.py:11, called at test_suite.py:17)"
    )
    (assertion,) = episodes["test_helper"].assertions
    assert (assertion.name, assertion.passed) == ('assert not calls, "not empty"', False)
    assert (assertion.file, assertion.line) == ("helpers.py", 3)


def test_a_failed_check_and_a_subtest_are_followed_by_their_error(suite):
    suite.write(CHECKED)
    episodes = suite.run().episodes
    assert {name: (e.outcome, len(e.assertions)) for name, e in episodes.items()} == {
        "test_check": ("failed", 1),
        "test_subtest": ("failed", 1),
    }
    reason = "failed: polite; then IndexError: list index out of range (test_suite.py:7)"
    assert episodes["test_check"].reason == reason


@pytest.fixture
def library(pytester):
    folder = pytester.path / "site-packages"
    folder.mkdir()
    (folder / "fussy.py").write_text(FUSSY)
    pytester.syspathinsert(folder)


def test_a_failed_assert_that_was_handled_changes_nothing(suite, library):
    suite.write(HANDLED)
    assert {name: (e.outcome, e.reason) for name, e in suite.run().episodes.items()} == {
        "test_expected_assert": ("error", "ConnectionError: refused (test_suite.py:9)"),
        "test_retried": ("error", "ConnectionError: refused (test_suite.py:17)"),
        "test_inside_of_a_library": ("error", "ValueError: no JSON (test_suite.py:20)"),
        "test_expected_error": ("passed", None),
    }


def test_an_evaluation_that_catches_its_failed_assert_is_failed(suite, pytester):
    pytester.makepyfile(
        desk_eval="""
        def test_desk(episode):
            assert 1 == 1
            try:
                assert not [1], "not empty"
            except AssertionError:
                raise KeyError("b")
        """
    )
    ran = suite.run("--eval", "desk_eval.py")
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_desk"]
    assert (episode.outcome, [a.passed for a in episode.assertions]) == ("failed", [True, False])
