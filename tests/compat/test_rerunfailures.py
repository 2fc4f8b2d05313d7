"""pytest-rerunfailures: every attempt is recorded, and the last one counts."""

from __future__ import annotations

import pytest

SUITE = """
import asyncio
import pytest

tries = {}

def tried(name):
    tries[name] = tries.get(name, 0) + 1
    return tries[name]

def test_steady(episode): pass

def test_second_time(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", cost_usd=0.5)
    assert tried("second") == 2

async def test_async(episode):
    await asyncio.sleep(0)
    episode.check("third time lucky", tried("async") == 3)

@pytest.mark.episode(iterations=2)
def test_iterations(episode):
    assert tried(episode.iteration) == episode.iteration

def test_never(episode):
    assert False

@pytest.fixture
def desk():
    if tried("desk") == 1:
        raise OSError("no desk")

def test_setup(desk, episode): pass

@pytest.mark.episode(scenario_id="marked")
def test_marked_alone():
    assert tried("marked") == 2
"""

ATTEMPTS = {
    "test_steady": ["passed"],
    "test_second_time": ["failed", "passed"],
    "test_async": ["failed", "failed", "passed"],
    "test_iterations[1-of-2]": ["passed"],
    "test_iterations[2-of-2]": ["failed", "passed"],
    "test_never": ["failed", "failed", "failed"],
    "test_setup": ["error", "passed"],
    "test_marked_alone": ["failed", "passed"],
}

NEEDS_EVIDENCE = False


def attempts(ran):
    """Return the outcomes of each test's attempts, in their order."""
    found = {}
    for episode in sorted(ran.episodes, key=lambda episode: episode.get("attempt", 1)):
        assert episode.get("attempt", 1) == len(found.get(episode["nodeid"], [])) + 1
        found.setdefault(episode["nodeid"], []).append(episode["outcome"])
    return {nodeid.rpartition("::")[2]: outcomes for nodeid, outcomes in found.items()}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "-n2"])
def test_every_attempt_is_recorded(suite, workers):
    suite.write(test_flaky=SUITE)
    ran = suite.run("--reruns=2", *workers, plugins=("rerunfailures", "xdist"))
    assert ran.status == 1, ran.output
    assert attempts(ran) == ATTEMPTS
    assert ran.junit["test_second_time"] == "passed"
    assert [name for name, outcome in ran.junit.items() if outcome != "passed"] == ["test_never"]
    assert "8 episodes: 7 passed, 1 failed; 8 reruns; $1.0000" in ran.output


def test_a_worker_that_dies_is_an_attempt_too(suite):
    suite.write(
        test_dies="""
        import os
        from pathlib import Path

        def test_dies_once(episode):
            if not Path("tried").exists():
                Path("tried").write_text("")
                os._exit(1)

        def test_other(episode): pass
        """
    )
    ran = suite.run("--reruns=1", "-n2", plugins=("rerunfailures", "xdist"))
    # Older versions may learn too late that the test was to be rerun: its workers tell it so
    # through a socket, and this one is gone at once.
    is_rerun = " 1 rerun " in ran.output.splitlines()[-1]
    died = ["error", "passed"] if is_rerun else ["error"]
    assert attempts(ran) == {"test_dies_once": died, "test_other": ["passed"]}
    assert ran.status == (0 if is_rerun else 1)
