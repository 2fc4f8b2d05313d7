"""`NoFullSuiteRun` reads the rules of `agent-eval-steering.yaml`, as episodes, hook and proxy do."""

from __future__ import annotations

import pytest

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


def run_check(suite, check, calls="CALLS", settings=SETTINGS):
    """Return the test's outcome and the reason of its only assertion."""
    if settings is not None:
        (suite.pytester.path / "agent-eval-steering.yaml").write_text(settings)
    suite.write(
        f"{HEAD}\ndef test_it(episode):\n    record(episode, {calls})\n    check({check})\n"
    )
    episode = suite.run().episodes["test_it"]
    (found,) = episode.assertions or (None,)
    return episode.outcome, found.reason if found else episode.reason


@pytest.mark.parametrize("calls", ["CALLS", "CALLS[1:]"])
@pytest.mark.parametrize(
    "check",
    [
        "NoFullSuiteRun()",
        "NoFullSuiteRun(optional=True)",
        # Rules of its own replace the file's, but the file still says which tools are shells.
        "NoFullSuiteRun(rules=Rules(aliases=('make test',)))",
        "NoFullSuiteRun(rules=Rules(shell_tools={'sh9': ('line',)}))",
    ],
)
def test_the_tools_of_the_settings_file_are_shells(suite, check, calls):
    outcome, reason = run_check(suite, check, calls)
    assert outcome == "failed"
    assert reason.startswith("turn 1: `pytest -q` (")


def test_a_tool_that_the_check_names_itself_is_read_by_its_own_arguments(suite):
    rules = "NoFullSuiteRun(rules=Rules(shell_tools={'devbox_sh': ('script',)}))"
    calls = "[('devbox_sh', 'script', 'pytest')]"
    assert run_check(suite, rules, calls)[0] == "failed"


@pytest.mark.parametrize(
    ("check", "outcome"),
    [("NoFullSuiteRun()", "failed"), ("NoFullSuiteRun(rules=Rules())", "passed")],
)
def test_rules_of_the_settings_file_hold_unless_the_check_has_its_own(suite, check, outcome):
    settings = "session:\n  pytest_full_suite_aliases: [make test]\n"
    calls = "[('bash', 'command', 'make test')]"
    assert run_check(suite, check, calls, settings)[0] == outcome


def test_without_a_settings_file_the_known_tools_are_shells(suite):
    assert run_check(suite, "NoFullSuiteRun()", settings=None) == ("passed", "no call ran it")


def test_a_wrong_settings_file_fails_the_test_and_is_named(suite):
    outcome, reason = run_check(suite, "NoFullSuiteRun()", settings="session:\n  tll: 3\n")
    assert outcome == "error"
    assert "agent-eval-steering.yaml:2: unknown key" in reason


def test_concurrent_episodes_read_it_too(suite):
    (suite.pytester.path / "agent-eval-steering.yaml").write_text(SETTINGS)
    suite.write(f"""{HEAD}
@pytest.mark.parametrize("n", [1, 2])
async def test_it(episode, n):
    record(episode, CALLS)
    check(NoFullSuiteRun())
""")
    ran = suite.run("--episode-concurrency=2")
    assert [e.outcome for e in ran.episodes.values()] == ["failed", "failed"]
