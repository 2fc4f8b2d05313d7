"""The progress: rewritten on a terminal, sparse elsewhere, never in the way of the output."""

from __future__ import annotations

import io

from ci_agent_eval.analysis.failure_causes import FailureCause
from ci_agent_eval.app.progress import (
    MOST_CAUSES,
    PLAIN_SECONDS,
    ProgressLine,
    format_first_failure,
    format_progress,
    format_running,
    is_live,
)
from ci_agent_eval.runner.progress import EpisodeInProgress, FirstFailure, RunProgress
from tests.tables import each_row


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Screen:
    """The lines that a terminal shows after it has read what was written."""

    def __init__(self):
        self.lines = [""]

    def write(self, text):
        text = text.replace("\x1b[?7l", "").replace("\x1b[?7h", "")
        for number, part in enumerate(text.split("\x1b[1A\r\x1b[2K")):
            if number:
                self.lines[-2:] = [""]
            first, *more = part.split("\n")
            self.lines[-1] += first
            self.lines += more

    def flush(self):
        pass


def failure(number=1, **fields):
    cause = {"kind": "check", "name": f"check {number}", "message": "no", **fields}
    return FirstFailure(f"scenario {number}", FailureCause(**cause))


def running(number=1, **fields):
    return EpisodeInProgress(
        **{
            "scenario_id": f"s{number}",
            "iteration": 1,
            "iterations": 1,
            "elapsed_s": 12.0,
            **fields,
        }
    )


def test_the_line_counts_failures_cost_running_episodes_and_time():
    progress = RunProgress(
        128,
        200,
        failed=3,
        failed_scenarios=1,
        errors=2,
        violations=1,
        cost_usd=0.52,
        running=(running(1), running(2)),
    )
    assert format_progress(progress, 41.9, 5) == (
        "128/200 episodes · 3 failed in 1 scenario · 2 errors · 1 budget violation · "
        "$0.52 of $5.00 · 2 running · 0:41"
    )


def test_a_running_episode_with_long_names_fits_80_columns():
    name = "refunds[over-the-limit-of-a-manager-and-later-than-thirty-days-on-monday]"
    long = running(scenario_id=name, iterations=10)
    line = format_running(long)
    assert len(line) == 79
    assert line.startswith("  refunds[over-")
    assert "-monday] 1/10   " in line


def test_on_a_terminal_the_lines_stay_below_what_the_suite_prints():
    screen, clock = Screen(), Clock()
    line = ProgressLine(screen, screen, live=True, clock=clock)
    line.show(RunProgress(0, 2, running=(running(1), running(2))))
    line.echo("test_refunds.py .")
    clock.now = 3
    line.show(RunProgress(1, 2, running=(running(2),)))
    assert screen.lines == [
        "test_refunds.py .",
        "1/2 episodes · 1 running · 0:03",
        format_running(running(2)),
        "",
    ]
    line.end()
    assert screen.lines == ["test_refunds.py .", ""]
    line.echo("1 passed")
    assert screen.lines == ["test_refunds.py .", "1 passed", ""], "nothing is drawn after the end"


def test_on_a_terminal_few_running_episodes_are_shown():
    screen = Screen()
    many = tuple(running(number) for number in range(8))
    ProgressLine(screen, screen, live=True, clock=Clock()).show(RunProgress(running=many))
    assert len(screen.lines) == 1 + 5 + 1 + 1
    assert screen.lines[-2] == "  and 3 more"


def test_elsewhere_a_plain_line_comes_every_half_minute():
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(io.StringIO(), stream, clock=clock)
    line.show(RunProgress(1, 9))
    assert stream.getvalue() == ""
    clock.now = PLAIN_SECONDS
    line.show(RunProgress(2, 9))
    line.show(RunProgress(3, 9))
    assert stream.getvalue() == "agent-eval: 2/9 episodes · 0:30\n"


def test_a_suite_with_many_causes_does_not_fill_the_log():
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(io.StringIO(), stream, clock=clock)
    causes = tuple(failure(number) for number in range(MOST_CAUSES + 10))
    line.show(RunProgress(causes=causes[:1]))
    assert stream.getvalue() == "", "the report of a short run has it"
    for number in range(len(causes) + 1):
        clock.now += PLAIN_SECONDS
        line.show(RunProgress(causes=causes[:number]))
    lines = [one for one in stream.getvalue().splitlines() if " 0 episodes" not in one]
    assert lines[0] == "agent-eval: new failure in scenario 0: check 0: no"
    assert len(lines) == MOST_CAUSES + 1
    assert lines[-1] == "agent-eval: there are more causes; the report names them"


def test_foreign_text_cannot_control_the_terminal_or_the_runner():
    hostile = "x\x1b[2J\n::set-output name=a::b"
    line = format_first_failure(failure(name=hostile, file=hostile))
    foreign = running(scenario_id="::error::" + hostile)
    shown = line + format_running(foreign)
    assert not set("\x1b\n") & set(shown)
    assert "\n::" not in shown
    assert not format_running(running(scenario_id="::error::x")).strip().startswith("::")


@each_row(
    ("stream", "environ", "live"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"CI": "false"}, True),
        (Terminal(), {"CI": "true"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_lines_are_rewritten_only_on_a_terminal_outside_of_ci(stream, environ, live):
    assert is_live(stream, environ) is live
