"""Whatever makes an agent, it is opened once and closed the way it asks for."""

from __future__ import annotations

import asyncio
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
