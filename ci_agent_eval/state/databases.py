"""Rows of databases: SQLite by Python's own module, all others by SQLAlchemy."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.state.snapshot import Snapshot

SQLITE_HEADER = b"SQLite format 3\0"


class _Table(NamedTuple):
    name: str
    key: Sequence[str]
    """Columns of the primary key; empty: it has none."""
    rows: Iterable[Mapping[str, Any]]


def read_sqlite_file(address: str, snapshot: Snapshot) -> None:
    """Read a SQLite file by its `file:` address, without changing or locking it."""
    with closing(sqlite3.connect(f"{address}?mode=ro", uri=True)) as connection:
        read_sqlite(connection, snapshot)


def read_sqlite(connection: sqlite3.Connection, snapshot: Snapshot) -> None:
    """Read all tables as the connection sees them, its uncommitted changes included."""
    cursor = connection.cursor()
    cursor.row_factory = None
    tables = cursor.execute(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' "
        "escape '\\' order by name"
    ).fetchall()
    for (name,) in tables:
        if not snapshot.is_ignored(f"{name}/"):
            _add_table(_read_sqlite_table(cursor, name), snapshot)


def _read_sqlite_table(cursor: sqlite3.Cursor, name: str) -> _Table:
    columns = cursor.execute("select name, pk from pragma_table_info(?)", (name,)).fetchall()
    key = [column for column, place in sorted(columns, key=lambda one: one[1]) if place]
    quoted = name.replace('"', '""')
    rows = cursor.execute(f'select * from "{quoted}"')  # noqa: S608 - a name, quoted as SQL asks
    names = [column[0] for column in rows.description]
    return _Table(name, key, (dict(zip(names, row, strict=True)) for row in rows))


def read_sqlalchemy(source: Any, snapshot: Snapshot) -> None:
    """Read all tables of an Engine, or as a Connection or a Session sees them."""
    if hasattr(source, "connect"):
        with source.connect() as connection:
            _read_connection(connection, snapshot)
        return
    has_begun = source.in_transaction()
    try:
        is_session = hasattr(source, "get_bind")
        _read_connection(source.connection() if is_session else source, snapshot)
    finally:
        if not has_begun:  # reading began a transaction that its owner knows nothing of
            source.rollback()


def _read_connection(connection: Any, snapshot: Snapshot) -> None:
    import sqlalchemy  # noqa: PLC0415 - its owner has imported it

    inspector = sqlalchemy.inspect(connection)
    for name in sorted(inspector.get_table_names()):
        if not snapshot.is_ignored(f"{name}/"):
            key = inspector.get_pk_constraint(name)["constrained_columns"]
            every = sqlalchemy.select(sqlalchemy.text("*")).select_from(sqlalchemy.table(name))
            _add_table(_Table(name, key, connection.execute(every).mappings()), snapshot)


def _add_table(table: _Table, snapshot: Snapshot) -> None:
    """Add the rows by primary key; without one by a hash, so that rows are added or removed."""
    for row in table.rows:
        values = [str(row[column]) for column in table.key] or [f"row {_hash_row(row)}"]
        snapshot.add(f"{table.name}/{','.join(values)}", row)


def _hash_row(row: Mapping[str, Any]) -> str:
    text = json.dumps(to_jsonable(dict(row)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
