"""The progress line: rewritten on a terminal, sparse elsewhere, never in the way of the output."""

from __future__ import annotations

import io

from ci_agent_eval.app.progress import PLAIN_SECONDS, ProgressLine, format_progress
from ci_agent_eval.runner import RunProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_line_counts_episodes_violations_and_cost():
    progress = RunProgress(3, 12, failed=1, errors=1, violations=2, cost_usd=0.0123)
    assert format_progress(progress) == (
        "agent-eval: 3 of 12 episodes ended, failed: 1, errors: 1, budget violations: 2, $0.0123"
    )
    assert format_progress(RunProgress()).startswith("agent-eval: 0 episodes ended")
    assert format_progress(RunProgress(9, 3)).startswith("agent-eval: 9 episodes ended")


def test_on_a_terminal_the_line_stays_below_what_the_suite_prints():
    out, terminal = io.StringIO(), Terminal()
    line = ProgressLine(out, terminal, Clock())
    line.show(RunProgress(1, 2))
    line.echo("test_refunds.py .")
    line.show(RunProgress(2, 2))
    line.end()
    assert out.getvalue() == "test_refunds.py .\n"
    shown = terminal.getvalue().split("\r\x1b[2K")
    first, second = format_progress(RunProgress(1, 2)), format_progress(RunProgress(2, 2))
    assert [part for part in shown if part] == [first, first, second]
    assert shown[-1] == "", "nothing is left on the line"


def test_elsewhere_a_plain_line_comes_only_now_and_then():
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(io.StringIO(), stream, clock)
    line.show(RunProgress(1, 9))
    assert stream.getvalue() == ""
    clock.now = PLAIN_SECONDS
    line.show(RunProgress(2, 9))
    line.show(RunProgress(3, 9))
    assert stream.getvalue() == format_progress(RunProgress(2, 9)) + "\n"
