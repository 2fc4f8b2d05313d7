"""Notes about the selected episodes before they run: markers that have no effect on them.

A note never fails a test: the gate judges the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import iterations
from ci_agent_eval.pytest_plugin.collection.detection import NAME, owns_marker

_MAX_NAMES = 3
"""Maximum number of tests that a note names."""


def list_notes(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    """Yield a sentence for each kind of marker that has no effect, and on what runs alone."""
    yield from _note_unrepeated(items, default)
    yield from _note_foreign_markers(items)
    if options.get_concurrency(items[0].config) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.eligibility import (  # noqa: PLC0415 - inert until used
            build_alone_notes,
        )

        yield from build_alone_notes(items)


def _note_unrepeated(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    found = sorted(item.nodeid for item in iterations.find_unrepeated_episodes(items, default))
    if found:
        yield (
            f"run once, not repeated: {_join_names(found)}; pytest repeats neither methods "
            "of unittest.TestCase nor what is marked after collection"
        )


def _note_foreign_markers(items: Sequence[pytest.Item]) -> Iterator[str]:
    marked = [item for item in items if item.get_closest_marker(NAME) is not None]
    ignored = sorted(item.nodeid for item in marked if not owns_marker(item))
    if ignored:
        yield (
            f"the marker `{NAME}` of {_join_names(ignored)} is ignored, for pytest's "
            "setting `markers` names it as the project's own; take it out of there"
        )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"
