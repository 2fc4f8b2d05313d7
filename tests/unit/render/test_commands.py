"""The commands that end a comment: to run a regression again, and to accept it."""

from __future__ import annotations

import shlex

from ci_agent_eval.render.cards.model import list_commands
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import baseline, episode, failing, report
from tests.tables import each_row

TEN = range(1, 11)


def compare(head, base):
    built = report(*head, baseline=baseline(base))
    return built, list(list_commands(built))


def runs(build, name="tone", **fields):
    return [build(name, iteration=n, **fields) for n in TEN]


def test_a_regression_that_alone_closes_the_gate_can_be_accepted():
    lax = {"min_pass_rate": 0.0}
    built, commands = compare(runs(failing, **lax), runs(episode, **lax))
    assert [reason.kind for reason in built.verdict.reasons] == ["regression"]
    assert commands == [
        "agent-eval run tests/test_refunds.py --scenario tone --iterations 10",
        'agent-eval acknowledge tone --until 30d --reason "..."',
    ]
    comment = render_comment(build_report_view(built))
    assert f"```sh\n{commands[0]}\n{commands[1]}\n```\n\n10 episodes" in comment


@each_row(
    ("file", "shown"),
    [
        ("tests/a b.py", "'tests/a b.py' "),
        ("./t.py", "t.py "),
        *((odd, "") for odd in ("--install=evil", "-c", "/etc/t.py", "../t.py", "C:\\\\t.py")),
    ],
)
def test_only_a_file_of_the_repository_is_part_of_the_command(file, shown):
    _, commands = compare(runs(failing, file=file), runs(episode, file=file))
    assert commands == [f"agent-eval run {shown}--scenario tone --iterations 10"]


@each_row("nodeid", ["ragas", "promptfoo[gpt-5.1]", "inspect_ai::desk[gpt-5.1]", None])
def test_a_scenario_without_a_test_has_no_command(nodeid):
    fields = {"file": None, "nodeid": nodeid}
    _, commands = compare(runs(failing, **fields), runs(episode, **fields))
    assert commands == []


def test_a_scenario_without_a_file_is_run_by_its_test():
    fields = {"file": None, "nodeid": "tests/test_tone.py::test_tone"}
    _, commands = compare(runs(failing, **fields), runs(episode, **fields))
    assert commands == ["agent-eval run tests/test_tone.py --scenario tone --iterations 10"]


def test_what_fails_by_itself_too_cannot():
    _, commands = compare(runs(failing), runs(episode))
    assert commands == ["agent-eval run tests/test_refunds.py --scenario tone --iterations 10"]


def test_a_scenario_that_vanished_can_only_be_accepted():
    head = [*runs(episode)]
    _, commands = compare(head, [*head, *runs(episode, "gone for good")])
    assert commands == ["agent-eval acknowledge 'gone for good' --until 30d --reason \"...\""]


def test_nothing_regressed_without_a_baseline_or_if_it_failed_before():
    assert list(list_commands(report(*runs(failing)))) == []
    assert compare(runs(failing), runs(failing))[1] == []


def test_names_are_quoted_for_the_shell_and_left_out_if_they_cannot_be_copied():
    name = "a'; rm -rf ~ #"
    _, (command,) = compare(runs(failing, name), runs(episode, name))
    assert shlex.split(command)[3:5] == ["--scenario", name]
    for odd in ("a\nb", "a`b", "a\u202eb", "x" * 300):
        assert compare(runs(failing, odd), runs(episode, odd))[1] == []


def test_a_name_like_an_option_is_not_offered_to_be_accepted():
    lax = {"min_pass_rate": 0.0}
    _, commands = compare(runs(failing, "--agent=x", **lax), runs(episode, "--agent=x", **lax))
    assert [shlex.split(one)[1] for one in commands] == ["run"]
