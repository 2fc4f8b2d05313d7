"""Hooks of other plugins: columns for the reports, and sinks."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

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
