"""Whatever makes an agent, it is opened once and closed the way it asks for."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import pytest

from ci_agent_eval.authoring.conversations.factory import AgentFactory, FactoryError
from ci_agent_eval.authoring.simulation.steps import run_steps
from ci_agent_eval.errors import InputError
from tests.tables import each_row


class Agent:
    def __init__(self, log):
        self.log = log

    def respond(self, message):
        return message


def lived(make, **fixtures):
    """What the factory's agent is, and close it."""
    factory = AgentFactory.from_callable("here", make)
    assert set(factory.fixture_names) == set(fixtures)
    with asyncio.Runner() as runner:

        async def whole(awaitable):
            return await awaitable

        def run(awaitable):
            return runner.run(whole(awaitable))

        opened = run_steps(factory.open(fixtures), run)
        run_steps(opened.close(), run)
    return opened.agent


@contextmanager
def managed(log):
    yield Agent(log)
    log.append("left")


@asynccontextmanager
async def managed_async(log):
    yield Agent(log)
    log.append("left")


class Closes(Agent):
    def close(self):
        self.log.append("closed")


class ClosesBoth(Closes):
    async def aclose(self):
        self.log.append("closed async")


class ClosesWithDefault(Agent):
    def close(self, *, force=False):
        self.log.append(f"closed {force}")


class Enters(Closes):
    def __enter__(self):
        self.log.append("entered")

    def __exit__(self, *_):
        self.log.append("left")


class Named(Agent):
    close = "at hand"


async def made_async(log):
    await asyncio.sleep(0)
    return Closes(log)


@each_row(
    ("make", "log"),
    [
        (Agent, []),
        (Named, []),
        (Closes, ["closed"]),
        (ClosesBoth, ["closed async"]),
        (ClosesWithDefault, ["closed False"]),
        (Enters, ["entered", "left"]),
        (managed, ["left"]),
        (managed_async, ["left"]),
        (made_async, ["closed"]),
    ],
)
def test_an_agent_is_closed_once_and_its_own_way(make, log):
    seen = []
    agent = lived(make, log=seen)
    assert isinstance(agent, Agent)
    assert seen == log


def test_parameters_with_a_default_and_bound_ones_are_no_fixtures():
    def create(one, two, three=3, *rest, four, **more):
        return Agent([one, two, three, rest, four, more])

    assert lived(partial(create, two=2), one=1, four=4).log == [1, 2, 3, (), 4, {}]


@each_row(
    ("given", "said"),
    [
        (None, "give a factory as well"),
        (Agent([]), "not a Agent"),
        ("Agent", "not a str"),
        (lambda log, /: Agent(log), "let them have names"),
    ],
)
def test_what_is_no_factory_is_said(given, said):
    with pytest.raises(InputError, match=f"here: .*{said}"):
        AgentFactory.from_callable("here", given)


def test_an_assertion_of_the_factory_is_no_failure_of_the_agent():
    def asserts():
        raise AssertionError("no key")

    with pytest.raises(FactoryError, match="AssertionError: no key"):
        lived(asserts)


def test_any_other_error_of_the_factory_is_its_own():
    with pytest.raises(ZeroDivisionError):
        lived(lambda: 1 // 0)
