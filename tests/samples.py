"""Samples of large tables: `make test` runs these, and `make test-full` the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def run_sample(rows: Iterable[tuple[Any, ...]], sample: Collection[int]) -> list[Any]:
    """Return the rows for `pytest.mark.parametrize`; those at other numbers are marked full."""
    return [
        pytest.param(*row, marks=() if number in sample else pytest.mark.full)
        for number, row in enumerate(rows)
    ]
