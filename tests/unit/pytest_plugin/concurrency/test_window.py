"""Who may join those that are at work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.pytest_plugin.concurrency.fixture_scope_guard import (
    FixtureScopeGuard,
    GuardedItem,
)


def member(module: str, /, **needs: Any) -> GuardedItem:
    """One of a module of its own folder; `needs` is what it shares."""
    return GuardedItem(needs, {"class": module, "module": module, "package": module})


def window(*members: GuardedItem) -> tuple[FixtureScopeGuard, list[Any]]:
    made, items = FixtureScopeGuard(), [object() for _ in members]
    for item, one in zip(items, members, strict=True):
        made.add(item, one)  # type: ignore[arg-type]  # an item is a key here
    return made, items


def admits(made: FixtureScopeGuard, one: GuardedItem) -> bool:
    return made.admits(object(), one)  # type: ignore[arg-type]  # as above


def test_those_that_share_nothing_work_together():
    made, _ = window(member("a"), member("b"))
    assert admits(made, member("c"))


def test_an_item_does_not_work_beside_itself():
    made, (item,) = window(member("a"))
    assert not made.admits(item, member("a"))
    made.remove(item)
    assert made.admits(item, member("a"))


@pytest.mark.parametrize("scope", ["class", "module", "package"])
def test_a_fixture_is_had_by_one_node_at_a_time(scope):
    made, (item,) = window(member("a", **{scope: "a"}))
    assert admits(made, member("a", **{scope: "a"}))
    assert not admits(made, member("b", **{scope: "b"}))
    made.remove(item)
    assert admits(made, member("b", **{scope: "b"}))


def test_a_newcomer_begins_one_only_where_its_node_has_none_or_all_of_those_at_work():
    mixed, _ = window(member("a"), member("b"))
    assert not admits(mixed, member("a", module="a"))
    own, _ = window(member("a"), member("a"))
    assert admits(own, member("a", module="a"))
    others, _ = window(member("b"), member("c"))
    assert admits(others, member("a", module="a"))


def test_a_parametrized_fixture_has_one_value_at_a_time():
    made, _ = window(member("a", **{"[tier]": 0}))
    assert admits(made, member("b", **{"[tier]": 0}))
    assert not admits(made, member("b", **{"[tier]": 1}))
    assert admits(made, member("b", **{"[other]": 1}))


def test_evaluations_and_strict_tests_do_not_mix():
    made, _ = window(member("a", mode=True))
    assert not admits(made, member("b", mode=False))


MEMBERS = st.builds(
    lambda module, needs: member(
        module, **{key: module if key == "module" else value for key, value in needs.items()}
    ),
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from(["module", "[tier]", "mode"]), st.integers(0, 1)),
)


@given(st.lists(MEMBERS, max_size=12), st.data())
def test_whoever_comes_and_goes_no_two_values_are_had_at_once(wanted, data):
    made, inside = FixtureScopeGuard(), {}
    for one in wanted:
        item: Any = object()
        if made.admits(item, one):
            made.add(item, one)
            inside[item] = one
        elif inside:
            gone = data.draw(st.sampled_from(list(inside)))
            made.remove(gone)
            del inside[gone]
        for key in ("module", "[tier]", "mode"):
            assert len({m.needs[key] for m in inside.values() if key in m.needs}) <= 1
    for item in inside:
        made.remove(item)
    assert all(made.admits(object(), one) for one in wanted)  # type: ignore[arg-type]
