"""Tests that do nothing: what pytest itself costs and keeps for each."""

from __future__ import annotations

import pytest
from work import NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing(number: int) -> None:
    assert number >= 0
