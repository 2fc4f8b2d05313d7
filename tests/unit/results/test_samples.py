"""A few conversations of a run are kept while it is read: few, and whole."""

from __future__ import annotations

import random

from ci_agent_eval.results.baselines import runs as module
from ci_agent_eval.results.baselines.runs import MAX_TOOL_PATHS, SampleCollector
from tests.builders import calling, episode, failing


def list_samples(*episodes, dropped=()):
    samples = SampleCollector()
    for item in episodes:
        place = samples.put(item)
        if item not in dropped:
            samples.keep(item.key, place)
    return samples.list_samples()


def way(number, *names, **fields):
    return calling(*names).model_copy(update={"iteration": number, **fields})


def test_the_first_of_each_outcome_and_way_is_kept():
    found = list_samples(
        way(2, "a"), way(1, "a"), way(3, "b"), failing(iteration=4), failing(iteration=5)
    )
    assert [(one.outcome, one.iteration, one.tools) for one in found] == [
        ("failed", 4, ()),
        ("passed", 1, ("a",)),
        ("passed", 3, ("b",)),
    ]


def test_what_says_nothing_of_the_agent_is_not_kept():
    assert list_samples(episode(outcome="error", reason="429"), episode(outcome="skipped")) == ()
    assert list_samples(episode(trajectory=None)) == ()


def test_of_many_ways_the_earliest_few_are_kept_in_any_order():
    ways = [way(number, f"tool_{number}") for number in range(1, 9)]
    whole = list_samples(*ways)
    assert [one.iteration for one in whole] == list(range(1, MAX_TOOL_PATHS + 1))
    random.Random(7).shuffle(ways)
    assert list_samples(*ways) == whole


def test_an_episode_that_another_replaced_is_not_listed():
    old = way(1, "a")
    assert list_samples(old, way(2, "b"), dropped=[old])[0].tools == ("b",)


def test_a_conversation_that_is_too_long_is_noted_and_not_kept():
    (found,) = list_samples(way(1, {"name": "a", "arguments": "x" * module.MAX_CONVERSATION}))
    assert (found.tools, found.turns) == (("a",), None)
