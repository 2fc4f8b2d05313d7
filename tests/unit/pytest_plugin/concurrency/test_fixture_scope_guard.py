"""Which items may run concurrently."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.pytest_plugin.concurrency.fixtures import (
    FixtureScopeGuard,
    GuardedItem,
)


def guarded_item(module: str, /, **needs: Any) -> GuardedItem:
    """Return an item of a module in its own folder; `needs` are its shared fixtures."""
    return GuardedItem(needs, {"class": module, "module": module, "package": module})


def make_guard(*items_in: GuardedItem) -> tuple[FixtureScopeGuard, list[Any]]:
    guard, items = FixtureScopeGuard(), [object() for _ in items_in]
    for item, one in zip(items, items_in, strict=True):
        guard.add(item, one)  # type: ignore[arg-type]  # an item is a key here
    return guard, items


def admits(guard: FixtureScopeGuard, one: GuardedItem) -> bool:
    return guard.admits(object(), one)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("scope", ["class", "module", "package"])
def test_a_fixture_is_had_by_one_node_at_a_time(scope):
    guard, (item,) = make_guard(guarded_item("a", **{scope: "a"}))
    assert admits(guard, guarded_item("a", **{scope: "a"}))
    assert not admits(guard, guarded_item("b", **{scope: "b"}))
    guard.remove(item)
    assert admits(guard, guarded_item("b", **{scope: "b"}))


def test_a_newcomer_begins_one_only_where_its_node_has_none_or_all_of_those_at_work():
    mixed, _ = make_guard(guarded_item("a"), guarded_item("b"))
    assert not admits(mixed, guarded_item("a", module="a"))
    own, _ = make_guard(guarded_item("a"), guarded_item("a"))
    assert admits(own, guarded_item("a", module="a"))
    others, _ = make_guard(guarded_item("b"), guarded_item("c"))
    assert admits(others, guarded_item("a", module="a"))


def test_a_parametrized_fixture_has_one_value_at_a_time():
    guard, _ = make_guard(guarded_item("a", **{"[tier]": 0}))
    assert admits(guard, guarded_item("b", **{"[tier]": 0}))
    assert not admits(guard, guarded_item("b", **{"[tier]": 1}))
    assert admits(guard, guarded_item("b", **{"[other]": 1}))


MEMBERS = st.builds(
    lambda module, needs: guarded_item(
        module, **{key: module if key == "module" else value for key, value in needs.items()}
    ),
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from(["module", "[tier]", "mode"]), st.integers(0, 1)),
)


@given(st.lists(MEMBERS, max_size=12), st.data())
def test_whoever_comes_and_goes_no_two_values_are_had_at_once(wanted, data):
    guard, inside = FixtureScopeGuard(), {}
    for one in wanted:
        item: Any = object()
        if guard.admits(item, one):
            guard.add(item, one)
            inside[item] = one
        elif inside:
            gone = data.draw(st.sampled_from(list(inside)))
            guard.remove(gone)
            del inside[gone]
        for key in ("module", "[tier]", "mode"):
            assert len({m.needs[key] for m in inside.values() if key in m.needs}) <= 1
    for item in inside:
        guard.remove(item)
    assert all(guard.admits(object(), one) for one in wanted)  # type: ignore[arg-type]
