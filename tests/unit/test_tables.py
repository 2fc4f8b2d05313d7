"""Tables of cases: every row runs, and every failing one is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tables import each_row


def test_every_row_runs_and_the_failing_ones_are_named() -> None:
    seen = []

    @each_row("a,b", [(1, 1), (1, 2), pytest.param(2, 3, id="third")])
    def compare(a: int, b: int) -> None:
        seen.append((a, b))
        assert a == b

    with pytest.raises(ExceptionGroup, match="2 of 3 rows fail") as raised:
        compare()
    assert seen == [(1, 1), (1, 2), (2, 3)]
    notes = [error.__notes__ for error in raised.value.exceptions]
    assert notes == [["row 1: {'a': 1, 'b': 2}"], ["row 2: third"]]


def test_a_table_without_rows_fails() -> None:
    @each_row("a", [])
    def compare(a: int) -> None:
        raise AssertionError

    with pytest.raises(AssertionError, match="without rows"):
        compare()


@each_row("name", ["a", "b"])
@each_row("value", ["1", "2"])
def test_rows_have_their_own_folder_and_environment(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "TABLE_ROW" not in os.environ
    monkeypatch.setenv("TABLE_ROW", name)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / value).touch()
