"""Warnings of threads while pytest goes from one item to the next.

For each item pytest replaces the recorder of warnings, and adds their filters one by one. A thread
of another episode may warn at any moment of that.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from _pytest.warnings import catch_warnings_for_item

from ci_agent_eval.pytest_plugin.concurrency.output import (
    hold_output,
    route_warnings,
    show_warning,
)


class _ItemFilters(list[Any]):
    """Filters of an item, to which pytest adds those that are there already: that changes nothing.

    `warnings.filterwarnings` moves a known filter to the front, so that for a moment a thread
    would see it there alone.
    """

    is_complete = True
    """Whether known filters keep their places."""

    def remove(self, value: Any) -> None:
        if not (self.is_complete and value in self):
            super().remove(value)

    def insert(self, index: Any, value: Any) -> None:
        if not (self.is_complete and value in self):
            super().insert(index, value)


class _SessionFilters(list[Any]):
    """The filters between two items; pytest copies them for the next one."""

    configured: Sequence[Any] = ()
    """The filters that an item without own ones has."""
    is_entering = False
    """Whether pytest is about to add the filters that are here already."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        is_next = self.is_entering and isinstance(index, slice) and found == self.configured
        return _ItemFilters(found) if is_next else found  # others have come: order counts


class WarningRouting:
    """The process's warnings, from the first item to the last."""

    def __init__(self) -> None:
        self._filters = _SessionFilters(warnings.filters)
        self._is_between = False
        """Whether pytest's recorder of an item may be in place, and ours not."""
        self._recorders: deque[object] = deque(maxlen=2)
        """pytest's recorders of the latest items: a thread may have looked one up just before."""
        self._original: Any = None
        self._keeps_filters = False

    def start(self, config: pytest.Config) -> None:
        """Route all warnings until the end of the session."""
        filters, self._original = warnings.filters, getattr(warnings, "_showwarnmsg", None)
        between_items = ExitStack()
        between_items.enter_context(route_warnings())
        config.add_cleanup(between_items.close)
        if getattr(sys.flags, "context_aware_warnings", False):  # each context has its own state
            self._original = None
        if self._original is None:
            return
        warnings._showwarnmsg = self._show  # type: ignore[attr-defined]  # noqa: SLF001 - Python calls it for each warning; `catch_warnings` never replaces it
        self._keeps_filters = config.pluginmanager.has_plugin("warnings")
        if self._keeps_filters:
            with catch_warnings_for_item(config, config.hook, when="runtest", item=None):
                self._filters[:] = self._filters.configured = list(warnings.filters)
            warnings.filters = self._filters

        def restore() -> None:
            warnings._showwarnmsg = self._original  # type: ignore[attr-defined]  # noqa: SLF001 - as above
            if self._keeps_filters:
                warnings.filters = filters

        config.add_cleanup(restore)

    def _show(self, message: Any) -> None:
        """Hold a warning of an episode before its turn, unless its code records warnings itself."""
        recorder = getattr(warnings, "_showwarnmsg_impl", None)
        # In this order: a recorder of pytest becomes known before ours is in place.
        is_held = self._is_between or any(recorder is known for known in tuple(self._recorders))
        is_held = is_held or getattr(recorder, "is_routed", False)
        if not (is_held and hold_output(partial(show_warning, message))):
            self._original(message)

    def begin_item(self, item: pytest.Item) -> None:
        """Expect pytest's changes for an item; called before all other hooks."""
        self._is_between = True
        if self._keeps_filters:
            warnings.filters = self._filters  # a thread may have left others
            self._filters.is_entering = not any(item.iter_markers("filterwarnings"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Route warnings inside pytest's own wrapper, which has replaced where they are shown."""
        self._recorders.append(getattr(warnings, "_showwarnmsg_impl", None))
        self._filters.is_entering = False
        if isinstance(warnings.filters, _ItemFilters):
            warnings.filters.is_complete = False
        with route_warnings():
            self._is_between = False
            try:
                return (yield)
            finally:
                self._is_between = True

    def end_item(self) -> None:
        """Expect no changes any more; called after all other hooks."""
        self._is_between = False
