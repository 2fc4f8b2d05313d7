"""Suites that are stopped at a budget: their agents ask a scripted model, 120 tokens an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.model_server import ModelServer
from tests.plugin.conftest import Ran, Suite

LATE = """
import time
from pathlib import Path
from ci_agent_eval.pytest_plugin.budgets import suite_budgets

late = Path(__file__).with_name("late")
real_clock = suite_budgets.clock
suite_budgets.clock = lambda: time.monotonic() + (9000 if late.exists() else 0)

def pytest_unconfigure():
    suite_budgets.clock = real_clock
"""
"""A conftest under which time is over when a file is there."""

HEAD = """
import asyncio
import time
import pytest
from pathlib import Path
from ci_agent_eval.engine import Agent, Provider

agent = Agent(provider=Provider("openai:gpt-5-mini", base_url={url!r}))
"""

COST_USD = 0.000065
"""Of one answer: 100 tokens in, 20 out."""


@contextmanager
def asking(
    suite: Suite, tests: str, script: object = ("answer",) * 9, conftest: str = ""
) -> Iterator[ModelServer]:
    """Write tests whose `agent` asks a server that answers by the script."""
    with ModelServer(script if isinstance(script, dict) else list(script)) as server:
        suite.write(HEAD.format(url=server.base_url) + tests, conftest=conftest)
        yield server


def stopped(ran: Ran, sentence: str) -> None:
    """See that pytest, its session and every cut episode say why the run was stopped."""
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    said = ran.session.stopped
    assert said is not None
    assert said.startswith(f"suite budget {sentence}")
    assert ran.session.state == "finished"
    ran.result.stdout.fnmatch_lines([f"!*Interrupted: {said}*", f"STOPPED {said}; *"][::-1])
    # Each process says what it knew when it stopped.
    exceeded = f"stopped: suite budget {sentence.partition(':')[0]}: "
    cut = [e for e in ran.results.episodes if e.outcome == "error"]
    assert all((e.reason or "").startswith(exceeded) for e in cut)
    if (ran.folder / "episodes/main.jsonl").exists():
        assert {e.reason for e in cut} <= {f"stopped: {said}"}
    assert not ran.results.complete
