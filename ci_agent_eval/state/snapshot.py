"""A snapshot of a state, which refuses more entries and bytes than its limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.state import Entries, Fields, matches_any
from ci_agent_eval.errors import InputError

MAX_ENTRIES = 10_000
"""Rows, files or requests of one state."""
MAX_BYTES = 32_000_000
"""Bytes of the fields of one state, and of the files that are read."""
MAX_TEXT = 64_000
"""Bytes of a binary value or a file that are kept; a larger one is kept as its hash."""

ReadState = Callable[["Snapshot"], None]
"""Adds every entry of a state to the snapshot."""


class Snapshot:
    """Collects the entries of a state; ignored entries and fields are left out."""

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = ignored
        self._entries: dict[str, Fields] = {}
        self._bytes = 0

    @property
    def entries(self) -> Entries:
        """The entries so far."""
        return self._entries

    def is_ignored(self, name: str) -> bool:
        """Say whether an entry is ignored; of a table or folder, which ends in `/`, all of it."""
        return matches_any(name, self._ignored)

    def add(self, name: str, fields: Mapping[str, Any]) -> None:
        """Add an entry; one of the same name gets a number. Raises InputError at the limits."""
        name = clean_text(name)
        if self.is_ignored(name):
            return
        kept = {
            clean_text(str(key)): _convert_value(value)
            for key, value in fields.items()
            if not self.is_ignored(f"{name}.{key}")
        }
        self.count_bytes(len(json.dumps(kept)))
        if len(self._entries) >= MAX_ENTRIES:
            raise InputError(f"it has more than {MAX_ENTRIES:,} entries; {_REMEDY}")
        self._entries[self._number_name(name)] = kept

    def count_bytes(self, number: int) -> None:
        """Count bytes that are read. Raises InputError at the limit."""
        self._bytes += number
        if self._bytes > MAX_BYTES:
            raise InputError(f"it has more than {MAX_BYTES // 1_000_000} MB; {_REMEDY}")

    def _number_name(self, name: str) -> str:
        if name not in self._entries:
            return name
        number = 2
        while f"{name} #{number}" in self._entries:
            number += 1
        return f"{name} #{number}"


_REMEDY = 'leave out tables or folders with ignore=["NAME/*"]'


def _convert_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return describe_bytes(bytes(value))
    # A database's own types, such as Decimal and datetime, read best as their text.
    is_plain = value is None or isinstance(value, str | int | float | Mapping | list | tuple)
    return to_jsonable(value if is_plain else str(value))


def describe_bytes(data: bytes) -> Any:
    """Return short UTF-8 as text, and anything else as its size and hash."""
    if len(data) <= MAX_TEXT:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
