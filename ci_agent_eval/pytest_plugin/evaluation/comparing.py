"""How sets and mappings differ, in an order of our own.

pytest goes through such differences in the order of a set, which changes with the hash seed
of the process. What an evaluation keeps as a reason must not: it is told here in the order
of the mapping, or of the texts, wherever there is more than one difference to tell.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from pprint import pformat
from typing import Any

import pytest
from _pytest._io.saferepr import saferepr
from _pytest.assertion import pytest_assertrepr_compare

from ci_agent_eval.current import is_evaluating
from ci_agent_eval.pytest_plugin.evaluation.files import is_evaluation
from ci_agent_eval.pytest_plugin.evaluation.steady import with_sorted_sets

_LEFT, _RIGHT = ("==", "<=", "<"), ("==", ">=", ">")
"""Comparisons that items on one side alone make false."""


_TITLE = 30
"""Characters of a value in a title, about as many as pytest shows."""


class OrderedDifferences:
    """Explains comparisons of sets and mappings while an evaluation runs, and none in colours."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Have pytest explain in plain text: colours would count where it cuts a text."""
        if not is_evaluation(item) or not item.config.pluginmanager.hasplugin("terminalreporter"):
            return (yield)
        writer = item.config.get_terminal_writer()
        before, writer.code_highlight = writer.code_highlight, False
        try:
            return (yield)
        finally:
            writer.code_highlight = before

    def pytest_assertrepr_compare(
        self, config: pytest.Config, op: str, left: object, right: object
    ) -> list[str] | None:
        """Explain a comparison that pytest would explain in the order of a set, or leave it."""
        if not is_evaluating():
            return None
        try:
            lines = list(_differences(op, left, right))
            if is_dataclass(left) or is_dataclass(right):
                return _with_sorted_title(config, op, left, right)
        except Exception:  # noqa: BLE001 - values that cannot be compared are pytest's to explain
            return None
        return [f"{saferepr(left)} {op} {saferepr(right)}", "", *lines] if lines else None


def _with_sorted_title(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Return pytest's explanation, its title from texts that are in order before they are cut."""
    lines = pytest_assertrepr_compare(config, op, left, right)
    if not lines:
        return None
    return [f"{_title(left)} {op} {_title(right)}", *list(lines)[1:]]


def _title(value: object) -> str:
    text = with_sorted_sets(repr(value))
    kept = (_TITLE - 3) // 2
    return text if len(text) <= _TITLE else f"{text[:kept]}...{text[-kept:]}"


def _differences(op: str, left: object, right: object) -> Iterable[str]:
    if isinstance(left, AbstractSet) and isinstance(right, AbstractSet):
        return _of_sets(op, left, right)
    if op == "==" and isinstance(left, Mapping) and isinstance(right, Mapping):
        return _of_mappings(left, right)
    return ()


def _of_sets(op: str, left: AbstractSet[Any], right: AbstractSet[Any]) -> Iterator[str]:
    """Yield what one side has more, if there is more than one thing of any side."""
    sides = [("left", left - right)] if op in _LEFT else []
    sides += [("right", right - left)] if op in _RIGHT else []
    if all(len(extra) < 2 for _, extra in sides):
        return
    for side, extra in sides:
        if extra:
            yield f"Extra items in the {side} set:"
            yield from sorted(map(saferepr, extra))


def _of_mappings(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> Iterator[str]:
    """Yield how the values differ, if there is more than one key whose value does."""
    common = [key for key in left if key in right]
    differing = [key for key in common if left[key] != right[key]]
    if len(differing) < 2:
        return
    if same := len(common) - len(differing):
        yield f"Omitting {same} identical items"
    yield "Differing items:"
    for key in differing:
        yield f"{saferepr({key: left[key]})} != {saferepr({key: right[key]})}"
    yield from _more("Left", left, [key for key in left if key not in right])
    yield from _more("Right", right, [key for key in right if key not in left])


def _more(side: str, mapping: Mapping[Any, Any], keys: Sequence[Any]) -> Iterable[str]:
    if not keys:
        return []
    title = f"{side} contains {len(keys)} more item{'' if len(keys) == 1 else 's'}:"
    return [title, *pformat({key: mapping[key] for key in keys}).splitlines()]
