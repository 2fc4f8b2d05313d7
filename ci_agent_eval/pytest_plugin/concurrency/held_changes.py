"""Changes that autouse fixtures make with `monkeypatch`, held while episodes overlap.

A change applies to the whole process. Episodes overlap only if all of them make the same changes in
their setup; the first one applies them, and the last one undoes them. Any other episode waits for
its turn.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.parts import get_parts

FIXTURE = "monkeypatch"
"""pytest's fixture."""

_METHODS = {name for name in vars(pytest.MonkeyPatch) if not name.startswith("_")} - {
    "context",
    "undo",
}
"""The methods of `pytest.MonkeyPatch` that change something."""


class _Change(NamedTuple):
    """A call of `monkeypatch`."""

    method: str
    values: tuple[object, ...]
    """Its arguments, then each keyword and its value."""

    def is_same(self, other: _Change) -> bool:
        """Return whether the other one changes the same object to an equal value."""
        return (
            self.method == other.method
            and len(self.values) == len(other.values)
            and all(map(_is_same, self.values, other.values))
        )


def _is_same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, str | int | float | PurePath) and one == other)


class HeldChanges:
    """The changes in force, and how many of them each overlapping episode has made."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._changes: list[_Change] = []
        self._counts: dict[pytest.Item, int] = {}
        self._refused: set[pytest.Item] = set()

    def enter(self, item: pytest.Item) -> None:
        """Add an episode, whose setup begins."""
        self._counts[item] = 0

    def agrees(self, item: pytest.Item) -> bool:
        """Return whether an episode has made the changes in force in its setup, and no others."""
        return item not in self._refused and self._counts[item] == len(self._changes)

    def leave(self, item: pytest.Item) -> None:
        """Remove an episode, if it is present; the last one undoes the changes."""
        self._counts.pop(item, None)
        self._refused.discard(item)
        if not self._counts:
            self._undo()

    def apply(self, item: pytest.Item, method: str, *arguments: object, **keywords: object) -> None:
        """Make a change, unless it is in force. Raises InputError if others overlap without it."""
        named = chain.from_iterable(sorted(keywords.items()))
        change, count = _Change(method, (*arguments, *named)), self._counts.get(item, 0)
        if count < len(self._changes):
            if not self._changes[count].is_same(change):
                raise self._refuse(item, method)
        else:
            self._require_alone(item, method)
            getattr(self._patch, method)(*arguments, **keywords)
            self._changes.append(change)
        self._counts[item] = count + 1

    def undo(self, item: pytest.Item) -> None:
        """Undo the changes. Raises InputError if they are in force for others, too."""
        self._require_alone(item, "undo")
        self._undo()
        self._counts[item] = 0

    def _undo(self) -> None:
        self._changes.clear()
        self._patch.undo()

    def _require_alone(self, item: pytest.Item, method: str) -> None:
        if self._counts.keys() - {item}:
            raise self._refuse(item, method)

    def _refuse(self, item: pytest.Item, method: str) -> InputError:
        self._refused.add(item)
        return InputError(
            f"{item.nodeid}: monkeypatch.{method} changes the whole process while other episodes "
            "run; let this test use the fixture `episode_alone`"
        )

    def build_definition(self, item: pytest.Item, definition: Any) -> Any:
        """Let a definition of `monkeypatch`, which is the item's own, make held changes."""

        def monkeypatch() -> Generator[EpisodePatch, None, None]:
            yield EpisodePatch(self, item)
            self.leave(item)

        definition.func, definition.argnames = monkeypatch, ()
        return definition


class EpisodePatch:
    """The value of `monkeypatch` in an episode that may overlap with others."""

    context = pytest.MonkeyPatch.context
    """For changes that a setup undoes itself."""

    def __init__(self, changes: HeldChanges, item: pytest.Item) -> None:
        self._changes = changes
        self._item = item

    def undo(self) -> None:
        """Undo the changes. Raises InputError if they are in force for others, too."""
        self._changes.undo(self._item)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        return partial(self._changes.apply, self._item, name)


def is_held(item: pytest.Item) -> bool:
    """Return whether only autouse fixtures of an item use `monkeypatch`."""
    if get_parts(item.config).scenario_count is not None:
        return False  # adaptive iterations start beyond episodes that wait for them
    info: Any = item._fixtureinfo  # type: ignore[attr-defined]  # noqa: SLF001 - see OwnDefinitions
    marks = item.iter_markers("usefixtures")
    named = {*info.argnames, *(name for mark in marks for name in mark.args)}
    autouse = set(info.initialnames) - named
    users = {
        name
        for name, definitions in info.name2fixturedefs.items()
        if any(FIXTURE in definition.argnames for definition in definitions)
    }
    return FIXTURE not in named and users <= autouse
