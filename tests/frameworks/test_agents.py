"""A framework's agents as they are: answers, conversations and typed outputs."""

from __future__ import annotations

from inspect import getsource, isfunction

import pytest

from ci_agent_eval.engine.adapters.frameworks.registry import find_framework
from ci_agent_eval.errors import InputError
from tests.frameworks.running import ask, run, talk


def has_state(agent):
    """Return whether its messages hold the state of a framework."""
    return not isfunction(agent) and find_framework(agent).label != "PydanticAI"


def test_its_agents_know_nothing_of_us(agents):
    assert "ci_agent_eval" not in getsource(agents)
    assert isfunction(agents.teller) or find_framework(agents.teller) is not None


def test_a_conversation_goes_on_and_a_new_one_begins_anew(agents, scripts):
    prompt = scripts.add(*map(scripts.final, ("Hello.", "Hello again.")))
    assert run(talk(agents.teller, prompt, "And now?")).final_response == "Hello again."
    assert run(ask(agents.teller, prompt)).final_response == "Hello."


def test_after_a_handoff_the_next_turns_belong_to_the_same_agents(agents, scripts):
    if not hasattr(agents, "desk"):
        pytest.skip("the framework has no agents")
    if hasattr(agents.desk, "tasks"):
        pytest.skip("a crew keeps no conversation")
    prompt = scripts.add(*scripts.hand_over(*agents.HANDOFF), *[scripts.final("Again.")] * 2)

    async def talk_twice(session):
        session.begin_episode("one")
        first = await ask(agents.desk, prompt, episode_id="one")(session)
        again = ask(agents.desk, "And now?", messages=first.messages, episode_id="one")
        return first, await again(session)

    first, second = run(talk_twice)
    if has_state(agents.desk):
        assert second.turns[-1].agent == first.turns[-1].agent is not None


def test_after_a_bad_end_the_conversation_goes_on_from_before_it(agents, scripts):
    prompt = scripts.add(scripts.final("Hello."), 400, 400, 400, 400, scripts.final("Back."))

    async def break_off(session):
        first = await ask(agents.teller, prompt)(session)
        bad = await ask(agents.teller, "And now?", messages=first.messages)(session)
        last = await ask(agents.teller, "And now?", messages=bad.messages)(session)
        return first, bad, last

    first, bad, last = run(break_off)
    assert (first.success, bad.success) == (True, False)
    if has_state(agents.teller):
        assert bad.messages == first.messages
    assert last.stop_reason == bad.stop_reason or last.final_response == "Back."


def test_messages_of_another_agent_are_refused(agents, scripts):
    if not has_state(agents.teller):
        pytest.skip("its messages are those of the test")
    with pytest.raises(InputError, match="must be those of an earlier result of this agent"):
        run(ask(agents.teller, "Hello", messages=[{"role": "user", "content": "Hi"}]))
