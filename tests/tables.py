"""Tables of cases: one test runs every row and names each that fails; files of several texts."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

Test = Callable[..., None]


def read_rows(path: Path) -> list[Any]:
    """Return the rows of a file of cases, one JSON value a line."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def read_sections(path: Path) -> dict[str, str]:
    """Return the texts of a file by their headings, `===== heading =====`."""
    _, *parts = re.split(r"^===== (.+) =====\n", path.read_bytes().decode(), flags=re.MULTILINE)
    return {
        heading: text.removesuffix("\n")
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def write_sections(path: Path, folder: Path) -> None:
    """Write each text of a file into the file that its heading names, in a folder."""
    for name, text in read_sections(path).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


class _Row(NamedTuple):
    number: int
    label: str
    values: Mapping[str, object]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], Any] | None = None,
) -> Callable[[Test], Test]:
    """Call a test with each row as one case; takes what `pytest.mark.parametrize` takes.

    Rows share the fixtures of the one case, but each has a folder of its own in `tmp_path`, and
    its changes by `monkeypatch` are undone. Raises an ExceptionGroup of all failing rows.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_build_row(columns, row, ids, number) for number, row in enumerate(rows)]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run_rows(**fixtures: object) -> None:
            assert table, "a table without rows tests nothing"
            errors = [_run_row(test, row, fixtures) for row in table]
            if failures := [error for error in errors if error is not None]:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in columns]
        run_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run_rows

    return decorate


def _run_row(test: Test, row: _Row, fixtures: Mapping[str, object]) -> Exception | None:
    with pytest.MonkeyPatch.context() as patch:
        own: dict[str, object] = {}
        if "monkeypatch" in fixtures:
            own["monkeypatch"] = patch
        if isinstance(folder := fixtures.get("tmp_path"), Path):
            own["tmp_path"] = folder / str(row.number)
            (folder / str(row.number)).mkdir()
        try:
            test(**{**fixtures, **own, **row.values})
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are reported
            error.add_note(f"row {row.label}")
            return error if isinstance(error, Exception) else AssertionError(str(error))
    return None


def _build_row(
    columns: Sequence[str], row: Any, ids: Iterable[str] | Callable[[Any], Any] | None, number: int
) -> _Row:
    label: object = None
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "rows have no marks"
        label, row = row.id, row.values if len(columns) > 1 else row.values[0]
    if label is None and callable(ids):
        label = ids(row) if len(columns) == 1 else None
    elif label is None and ids is not None:
        label = list(ids)[number]
    values = (row,) if len(columns) == 1 else tuple(row)
    assert len(values) == len(columns), f"row {number} has {len(values)} values: {row!r}"
    named = dict(zip(columns, values, strict=True))
    text = repr(named)[:300] if label is None else str(label)
    return _Row(number, f"{number}: {text}", named)
