"""anyio's plugin: an episode on plain asyncio runs on our loop, on another backend on its own."""

from __future__ import annotations

from importlib.metadata import version

import pytest

ANYIO = tuple(int(part) for part in version("anyio").split(".")[:2])

SUITE = """
import asyncio
import anyio
import pytest

@pytest.fixture
def anyio_backend(): return "asyncio"

@pytest.fixture
async def its_loop(anyio_backend): return asyncio.get_running_loop()

@pytest.mark.anyio
async def test_marked(episode, its_loop):
    assert asyncio.get_running_loop() is its_loop
    with episode.turn("Hello") as turn:
        await anyio.sleep(0)
        turn.reply("Hi")

@pytest.mark.anyio
@pytest.mark.episode(iterations=2)
async def test_marked_fails(its_loop):
    assert asyncio.get_running_loop() is its_loop
    assert 1 == 2

@pytest.mark.anyio
class TestDesk:
    async def test_checks(self, episode):
        episode.check("polite", False)

    async def test_errors(self, episode):
        raise ConnectionError("refused")

async def test_by_its_fixture(episode, its_loop):
    assert asyncio.get_running_loop() is its_loop

ours = []

async def test_ours(episode):
    ours.append(asyncio.get_running_loop())
    await anyio.sleep(0)

@pytest.mark.episode
async def test_ours_fails():
    assert [asyncio.get_running_loop()] == ours
    assert 1 == 2
"""

OUTCOMES = {
    "test_marked": "passed",
    "test_marked_fails[1-of-2]": "failed",
    "test_marked_fails[2-of-2]": "failed",
    "test_checks": "failed",
    "test_errors": "error",
    "test_by_its_fixture": "passed",
    "test_ours": "passed",
    "test_ours_fails": "failed",
}

NEEDS_EVIDENCE = False


@pytest.mark.parametrize("workers", [(), ("-n2", "--dist=loadfile")], ids=["alone", "-n2"])
def test_episodes_run_on_the_loop_of_who_claims_them(suite, workers):
    suite.write(test_anyio=SUITE)
    ran = suite.run(*workers, plugins=("anyio", "xdist"))
    assert ran.status == 1, ran.output
    assert ran.outcomes == OUTCOMES
    failed = [e for e in ran.episodes if e["outcome"] == "failed"]
    assert {a["name"] for e in failed for a in e["assertions"]} == {"assert 1 == 2", "polite"}


def test_each_backend_is_an_episode_of_its_own(suite):
    suite.write(
        test_backends="""
        import pytest

        @pytest.fixture(params=["plain", "eager"])
        def anyio_backend(request): return "asyncio", {}

        @pytest.mark.anyio
        async def test_one(episode, anyio_backend_name):
            assert anyio_backend_name == "asyncio"
        """
    )
    ran = suite.run(plugins=("anyio",))
    assert ran.outcomes == {"test_one[plain]": "passed", "test_one[eager]": "passed"}


MARKED_LATE = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("anyio")
"""


BACKEND = """
import pytest

@pytest.fixture
def anyio_backend(): return "asyncio"
"""

LATE = """
import pytest

async def test_asks(episode): assert 1 == 2

@pytest.mark.episode(scenario_id="marked")
async def test_marked(): assert 1 == 2
"""


@pytest.mark.parametrize("order", [("ci_agent_eval", "anyio"), ("anyio", "ci_agent_eval")])
@pytest.mark.parametrize(
    ("head", "backend", "suffix"),
    [
        (BACKEND, "anyio_backend", ""),
        pytest.param(
            *("", "", "[asyncio]"),
            marks=pytest.mark.skipif(
                ANYIO < (4, 12), reason="anyio makes items anew, one for each backend, since then"
            ),
        ),
    ],
    ids=["as they are", "made anew"],
)
def test_what_a_conftest_marks_is_an_episode_still(suite, order, head, backend, suffix):
    late = LATE.replace("(episode)", f"(episode, {backend})").replace("()", f"({backend})")
    suite.write(conftest=MARKED_LATE, test_late=head + late)
    ran = suite.run(plugins=order, without_ours=True)
    assert ran.status == 1, ran.output
    assert ran.outcomes == {f"test_asks{suffix}": "failed", f"test_marked{suffix}": "failed"}
    assert ran.session["selected"] == 2
    asks = f"test_late.py::test_asks{suffix}"
    assert {e["scenario_id"] for e in ran.episodes} == {"marked", asks}


@pytest.mark.skipif(ANYIO < (4, 12), reason="anyio has had its mode auto since then")
def test_in_its_mode_auto_every_episode_is_its(suite):
    suite.write(
        test_auto="""
        import asyncio
        import pytest

        loops = set()

        @pytest.fixture(params=["asyncio"])
        def anyio_backend(request): return request.param

        @pytest.fixture
        async def its_loop(anyio_backend): return asyncio.get_running_loop()

        async def test_one(episode, its_loop):
            assert asyncio.get_running_loop() is its_loop

        @pytest.mark.episode
        async def test_two(its_loop):
            assert asyncio.get_running_loop() is not its_loop
        """
    )
    ran = suite.run("--anyio-mode=auto", plugins=("anyio",))
    assert ran.outcomes == {"test_one[asyncio]": "passed", "test_two[asyncio]": "failed"}, (
        ran.output
    )
