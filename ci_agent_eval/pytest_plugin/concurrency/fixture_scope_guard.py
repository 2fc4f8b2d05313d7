"""The items that run at the same time, and the rule for adding one to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from ci_agent_eval.pytest_plugin.concurrency.fixtures import list_shared_needs
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation


@dataclass(frozen=True)
class GuardedItem:
    """An item with the fixtures and nodes that restrict its concurrency."""

    needs: Mapping[str, object]
    """The shared fixtures and their owners, see `fixtures.list_shared_needs`; and the mode of its
    asserts."""
    groups: Mapping[str, object]
    """The class, module and folder that it belongs to."""

    @classmethod
    def from_item(cls, item: pytest.Function) -> GuardedItem:
        """Determine the needs and groups of an item."""
        module = item.getparent(pytest.Module)
        groups = {
            "class": item.getparent(pytest.Class) or module,
            "module": module,
            "package": item.path.parent,
        }
        return cls({**list_shared_needs(item), "mode": is_evaluation(item)}, groups)


class FixtureScopeGuard:
    """The current item and the items that were started ahead of their turn."""

    def __init__(self) -> None:
        self._members: dict[pytest.Item, GuardedItem] = {}
        self._needs: Counter[tuple[str, object]] = Counter()
        self._groups: Counter[tuple[str, object]] = Counter()
        self._held: dict[str, object] = {}

    def __contains__(self, item: pytest.Item) -> bool:
        return item in self._members

    def add(self, item: pytest.Item, member: GuardedItem) -> None:
        """Add an item."""
        self._members[item] = member
        self._needs.update(member.needs.items())
        self._groups.update(member.groups.items())
        self._held.update(member.needs)

    def remove(self, item: pytest.Item) -> None:
        """Remove an item, if it is present."""
        member = self._members.pop(item, None)
        if member is None:
            return
        self._needs.subtract(member.needs.items())
        self._groups.subtract(member.groups.items())
        for key, value in member.needs.items():
            if not self._needs[key, value]:
                del self._needs[key, value]
                del self._held[key]
        for entry in [e for e in member.groups.items() if not self._groups[e]]:
            del self._groups[entry]

    def admits(self, item: pytest.Item, member: GuardedItem) -> bool:
        """Return whether an item may run concurrently with all present items.

        A fixture of a class, module or package must be used by all of them or be started by the new
        one, and two such fixtures of different nodes are never alive at once, as in any run.
        """
        if item in self._members:  # the same item twice has one set of fixtures
            return False
        return all(self._is_compatible(key, value, member) for key, value in member.needs.items())

    def _is_compatible(self, key: str, value: object, member: GuardedItem) -> bool:
        if self._held.get(key, value) != value:
            return False
        if key not in member.groups:
            return True
        return self._groups[key, member.groups[key]] in {0, len(self._members)}
