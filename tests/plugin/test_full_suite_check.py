"""`NoFullSuiteRun` reads the rules of `agent-eval-steering.yaml`, as episodes, hook and proxy do."""

from __future__ import annotations

SETTINGS = "session:\n  shell_tools: {devbox_sh: command}\n"

HEAD = """
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import NoFullSuiteRun
from ci_agent_eval.steering.policy.model import Rules

CALLS = [("bash", "command", "ls"), ("devbox_sh", "command", "pytest -q")]

def record(episode, calls):
    with episode.turn("Test it.") as turn:
        for tool, key, command in calls:
            turn.tool_call(tool, {key: command}, "done")
        turn.reply("It works.")
"""


def run_checks(suite, *checks, settings=SETTINGS):
    """Return each test's outcome and the reason of its only assertion; a check may name its calls."""
    if settings is not None:
        (suite.pytester.path / "agent-eval-steering.yaml").write_text(settings)
    tests = [
        f"async def test_{number}(episode):\n    record(episode, {calls})\n    check({check})\n"
        for number, (check, calls) in enumerate(checks)
    ]
    suite.write("\n".join([HEAD, *tests]))
    episodes = suite.run("--episode-concurrency=2").episodes
    found = [episodes[f"test_{number}"] for number in range(len(checks))]
    return [(e.outcome, e.assertions[0].reason if e.assertions else e.reason) for e in found]


def test_the_tools_of_the_settings_file_are_shells(suite):
    checks = [
        "NoFullSuiteRun()",
        "NoFullSuiteRun(optional=True)",
        # Rules of its own replace the file's, but the file still says which tools are shells.
        "NoFullSuiteRun(rules=Rules(aliases=('make test',)))",
        "NoFullSuiteRun(rules=Rules(shell_tools={'sh9': ('line',)}))",
    ]
    tests = [(check, calls) for check in checks for calls in ("CALLS", "CALLS[1:]")]
    # A tool that the check names itself is read by its own arguments.
    own = "NoFullSuiteRun(rules=Rules(shell_tools={'devbox_sh': ('script',)}))"
    *found, named = run_checks(suite, *tests, (own, "[('devbox_sh', 'script', 'pytest')]"))
    assert named[0] == "failed"
    for test, (outcome, reason) in zip(tests, found, strict=True):
        assert (outcome, reason.partition(" (")[0]) == ("failed", "turn 1: `pytest -q`"), test


def test_rules_of_the_settings_file_hold_unless_the_check_has_its_own(suite):
    settings = "session:\n  pytest_full_suite_aliases: [make test]\n"
    calls = "[('bash', 'command', 'make test')]"
    checks = [("NoFullSuiteRun()", calls), ("NoFullSuiteRun(rules=Rules())", calls)]
    found = run_checks(suite, *checks, settings=settings)
    assert [outcome for outcome, _ in found] == ["failed", "passed"]


def test_without_a_settings_file_the_known_tools_are_shells(suite):
    found = run_checks(suite, ("NoFullSuiteRun()", "CALLS"), settings=None)
    assert found == [("passed", "no call ran it")]


def test_a_wrong_settings_file_fails_the_test_and_is_named(suite):
    checks = ("NoFullSuiteRun()", "CALLS")
    ((outcome, reason),) = run_checks(suite, checks, settings="session:\n  tll: 3\n")
    assert outcome == "error"
    assert "agent-eval-steering.yaml:2: unknown key" in reason
