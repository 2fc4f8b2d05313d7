"""Snapshots of real databases, folders and functions, and what changed between two."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.state import sources
from ci_agent_eval.state.sources import build_source, watch_state

SHOP = """
create table orders (id integer primary key, item text, status text);
create table lines (order_id integer, place integer, sku text, primary key (place, order_id));
create table log (text text);
insert into orders values (1, 'kettle', 'paid'), (2, 'mug', 'paid');
insert into lines values (1, 7, 'K-1');
insert into log values ('opened'), ('opened');
"""


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.db"
    run(path, SHOP)
    return path


def run(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def changes(watch):
    state = watch.compare()
    assert state.error is None
    return {change.entry: (change.before, change.after) for change in state.changes}


def test_rows_are_named_by_their_primary_key_and_without_one_by_their_content(shop):
    entries = build_source(shop).take_snapshot()
    named = [name for name in entries if not name.startswith("log/")]
    assert named == ["lines/7,1", "orders/1", "orders/2"]
    assert entries["orders/1"] == {"id": 1, "item": "kettle", "status": "paid"}
    first, second = (name for name in entries if name.startswith("log/"))
    assert second == f"{first} #2"


def test_a_file_shows_what_is_committed_and_its_folder_is_not_written_to(shop, tmp_path):
    watch = watch_state(str(shop), None, ())
    assert (watch.source.name, watch.source.kind) == ("shop.db", "database")
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("update orders set status = 'refunded' where id = 1")
        connection.execute("delete from orders where id = 2")
        connection.execute("insert into orders values (3, 'cup', null)")
        connection.execute("insert into log values ('closed')")
        assert changes(watch) == {}
        connection.commit()
    found = changes(watch)
    (added,) = [name for name in found if name.startswith("log/")]
    assert found.pop(added) == (None, {"text": "closed"})
    assert found == {
        "orders/1": (
            {"id": 1, "item": "kettle", "status": "paid"},
            {"id": 1, "item": "kettle", "status": "refunded"},
        ),
        "orders/2": ({"id": 2, "item": "mug", "status": "paid"}, None),
        "orders/3": (None, {"id": 3, "item": "cup", "status": None}),
    }
    assert [path.name for path in tmp_path.iterdir()] == ["shop.db"]


def test_a_broken_file_is_an_error_that_names_it(shop):
    watch = watch_state(shop, None, ())
    shop.write_bytes(b"SQLite format 3\0 and nothing more")
    state = watch.compare()
    assert state.error.startswith("the state of 'shop.db' cannot be read: DatabaseError: ")
    assert (state.sha256, state.changes, state.final) == (None, (), None)


def test_ignored_tables_are_not_read_and_ignored_fields_not_compared(shop, monkeypatch):
    monkeypatch.setattr(sources, "MAX_ENTRIES", 3)
    with pytest.raises(InputError) as error:
        build_source(shop).take_snapshot()
    assert str(error.value) == (
        "the state of 'shop.db' cannot be read: it has more than 3 entries; "
        'leave out tables or folders with ignore=["NAME/*"]'
    )
    watch = watch_state(shop, None, ("log/*", "*.status"))
    run(shop, "update orders set status = 'refunded', item = 'pot' where id = 1")
    assert changes(watch) == {
        "orders/1": ({"id": 1, "item": "kettle"}, {"id": 1, "item": "pot"}),
    }


def test_binary_values_become_text_or_a_hash(tmp_path):
    with closing(sqlite3.connect(tmp_path / "files.db")) as connection:
        connection.execute("create table files (name text primary key, data blob)")
        connection.execute("insert into files values ('a', ?), ('b', ?)", (b"text", b"\xff\0"))
        connection.commit()
    entries = build_source(tmp_path / "files.db").take_snapshot()
    assert entries["files/a"]["data"] == "text"
    assert entries["files/b"]["data"] == {
        "bytes": 2,
        "sha256": hashlib.sha256(b"\xff\0").hexdigest(),
    }


def test_files_are_compared_by_content_and_links_are_not_followed(tmp_path):
    folder = tmp_path / "reports"
    (folder / "old").mkdir(parents=True)
    (folder / "old/may.txt").write_text("May\n")
    (folder / "large.bin").write_bytes(b"x" * 70_000)
    (folder / "link").symlink_to("/nonexistent")
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("main")
    watch = watch_state(folder, None, (".git/*",))
    assert (watch.source.name, list(watch.before)) == (
        "reports",
        ["large.bin", "link", "old/may.txt"],
    )
    assert watch.before["link"] == {"link": "/nonexistent"}
    assert watch.before["large.bin"]["content"]["bytes"] == 70_000
    (folder / "old/may.txt").write_text("June\n")
    (folder / ".git/HEAD").write_text("other")
    (folder / "large.bin").unlink()
    found = changes(watch)
    assert found["old/may.txt"] == ({"content": "May\n"}, {"content": "June\n"})
    assert found["large.bin"][1] is None
    assert len(found) == 2


def test_a_folder_that_is_gone_is_an_error(tmp_path):
    (tmp_path / "data").mkdir()
    watch = watch_state(tmp_path / "data", None, ())
    (tmp_path / "data").rmdir()
    assert watch.compare().error == ("the state of 'data' cannot be read: there is no such folder")


def test_files_count_towards_the_limit_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 1_000_000)
    (tmp_path / "large").write_bytes(b"x" * 1_000_001)
    with pytest.raises(InputError, match=r"it has more than 1 MB; leave out"):
        build_source(tmp_path).take_snapshot()


def test_a_mapping_of_mappings_is_a_table():
    shop = {"orders": {"#W1": {"status": "paid"}}, "open": True, "empty": {}, "tags": ["a"]}
    watch = watch_state(lambda: shop, "desk", ())
    assert watch.before == {
        "orders/#W1": {"status": "paid"},
        "open": {"value": True},
        "empty": {},
        "tags": {"value": ["a"]},
    }
    shop["orders"]["#W1"]["status"] = "refunded"
    shop["open"] = 1
    assert list(changes(watch)) == ["open", "orders/#W1"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "the state of a dict cannot be watched; give a function"),
        (7, "the state of a int cannot be watched; give a function that returns a mapping"),
        ("/nonexistent/x", "it does not exist yet"),
        (__file__, "it is not a SQLite file; give its folder"),
        (lambda: 3, "it is a int; return a mapping"),
        (lambda: 1 / 0, "the state of 'lambda' cannot be read: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_watched_is_refused(given, problem):
    with pytest.raises(InputError) as error:
        watch_state(given, None, ())
    assert problem in str(error.value)


def test_the_hash_does_not_depend_on_the_order_of_rows(shop, tmp_path):
    other = tmp_path / "other.db"
    run(other, SHOP.replace("(1, 'kettle', 'paid'), (2, 'mug', 'paid')", "(2, 'mug', 'paid')"))
    watch = watch_state(other, None, ())
    run(other, "insert into orders values (1, 'kettle', 'paid')")
    assert watch.compare().sha256 == watch_state(shop, None, ()).compare().sha256
