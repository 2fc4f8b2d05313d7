"""A provider's rate limits hold over all workers together."""

from __future__ import annotations

import pytest

from tests.model_server.script import Step
from tests.plugin.budget_suite import LATE, asking, stopped


@pytest.fixture
def suite(suite):
    """These suites are about when a model is asked, and need no evidence."""
    return suite.without_evidence()


LIMITED = """
limited = Agent(provider=Provider("openai:gpt-5-mini", base_url=agent.provider.base_url, rpm=3))

@pytest.mark.parametrize("number", range(8))
async def test_asks(aitest_run, number):
    await aitest_run(limited, f"question {number}", timeout_s=None)
    Path(f"answered-{number}").touch()
    if len(list(Path().glob("answered-*"))) == 3:
        await asyncio.sleep(3)
        Path("late").touch()
"""

REFUSED = """
async def until(name):
    while not Path(name).exists():
        await asyncio.sleep(0.05)

async def ask_until_it_waits(aitest_run, question):
    limiter = aitest_run.engine.get_limiter(agent.provider)
    waits, sleep = asyncio.Event(), limiter.sleep
    async def note_and_sleep(seconds):
        waits.set()
        await sleep(seconds)
    limiter.sleep = note_and_sleep
    asked = asyncio.create_task(aitest_run(agent, question, timeout_s=None))
    waiting = asyncio.create_task(waits.wait())
    await asyncio.wait({asked, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return asked

async def test_is_refused(aitest_run):
    asked = await ask_until_it_waits(aitest_run, "refused")
    Path("refused").touch()
    await until("seen")
    asked.cancel()

async def test_asks_next(aitest_run):
    await until("refused")
    asked = await ask_until_it_waits(aitest_run, "next")
    Path("seen").touch()
    assert not asked.done()
    asked.cancel()
"""


def test_workers_ask_no_more_than_one_process_may(suite):
    with asking(suite, LIMITED, conftest=LATE) as server:
        ran = suite.run("--total-wall-time-s=1000", "-n2")
    stopped(ran, "total_wall_time_s exceeded: ")
    assert len(server.requests) == 3
    assert sum(bool(e.trajectory and e.trajectory.agent_turns) for e in ran.results.episodes) == 3


def test_a_refusal_that_one_worker_hears_holds_the_others(suite):
    script = {"refused": [Step(status=429, retry_after="600"), "hi"], "next": ["hi"]}
    with asking(suite, REFUSED, script) as server:
        ran = suite.run("-n2")
    ran.result.assert_outcomes(passed=2)
    assert len(server.requests) == 1
