"""What makes an agent, and where its arguments come from."""

from __future__ import annotations

from tests.plugin.conversations.rig import outcomes


class TestFactories:
    def test_what_is_opened_in_a_plain_test_is_closed_by_the_same_task(self, write):
        ran = write("""
import anyio

class Grouped(AsyncEcho):
    async def __aenter__(self):
        self.group = anyio.create_task_group()
        await self.group.__aenter__()
        return self

    async def __aexit__(self, *how):
        await self.group.__aexit__(*how)
        log.append("left")

async def generated():
    async with anyio.create_task_group():
        yield AsyncEcho()
        log.append("left")

@conversation("manager", Grouped)
def test_manager(agent):
    assert agent.send("a") == "you said a"
    assert agent.send("b") == "you said b"

@conversation("generator", generated)
def test_generator(agent):
    assert agent.send("a") == "you said a"
    agent.reset()
    assert agent.send("a") == "you said a"

def test_log():
    assert log == ["left"] * 3
""").run("-W", "error")
        ran.result.assert_outcomes(passed=3)

    def test_their_parameters_are_fixtures_and_parameters_of_the_test(self, write):
        ran = write("""
from functools import partial

@pytest.fixture(params=["small", "large"])
def size(request):
    return request.param

@pytest.fixture
def agent():
    return "the fixture of this name"

def create(model, bound, size, agent, tier="free", *rest, **more):
    echo = Echo()
    echo.made_of = (model, bound, size, agent, tier, rest, more)
    return echo

@pytest.mark.parametrize("model", ["m1"])
@conversation("made", partial(create, bound=2))
def test_made(agent, size):
    assert agent.send("a")
    assert agent.made_of == ("m1", 2, size, "the fixture of this name", "free", (), {})
""").run()
        ran.result.assert_outcomes(passed=2)
        scenarios = sorted(e.scenario_id for e in ran.results.episodes)
        assert scenarios == ["made[large-m1]", "made[small-m1]"]

    def test_one_that_asserts_or_yields_nothing_is_an_error(self, write):
        ran = write("""
def asserts():
    assert 1 == 2
    yield Echo()

def nothing():
    if False:
        yield

def twice():
    yield Echo()
    yield Echo()

@conversation("asserts", asserts)
def test_asserts(agent): pass

@conversation("nothing", nothing)
async def test_nothing(agent): pass

@conversation("twice", twice)
def test_twice(agent): pass

@conversation("a class", lambda: Echo)
def test_class(agent): pass
""").run()
        assert set(outcomes(ran).values()) == {"error"}
        reasons = {name: e.reason for name, e in ran.episodes.items()}
        assert "the factory failed: AssertionError: assert 1 == 2" in reasons["test_asserts"]
        assert "yields no agent" in reasons["test_nothing"]
        assert "yields more than one agent" in reasons["test_twice"]
        assert "the factory made the class Echo, which is not an agent" in reasons["test_class"]
