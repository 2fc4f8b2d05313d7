"""An archive that nobody vouches for is used whole, or refused with a sentence and no trace."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.archives import ArchiveLimits, extract_archive
from tests.tables import each_row


def archive(tmp_path, *members, compression=zipfile.ZIP_DEFLATED):
    path = tmp_path / "report.zip"
    with zipfile.ZipFile(path, "w", compression) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return path


def unpack(path, tmp_path, wanted=lambda _: True, **limits):
    into = tmp_path / "into"
    into.mkdir(exist_ok=True)
    return extract_archive(path, into, wanted=wanted, limits=ArchiveLimits(**limits))


def refused(path, tmp_path, **limits):
    with pytest.raises(InputError) as caught:
        unpack(path, tmp_path, **limits)
    assert list((tmp_path / "into").iterdir()) == []
    return str(caught.value)


def test_what_is_wanted_is_written_and_nothing_else(tmp_path):
    path = archive(tmp_path, ("a/results.json", "{}"), ("a/report.html", "<p>"), ("a/b/", ""))
    found = unpack(path, tmp_path, wanted=lambda p: p.name == "results.json")
    assert [file.relative_to(tmp_path / "into").as_posix() for file in found] == ["a/results.json"]
    assert found[0].read_text() == "{}"
    assert not (tmp_path / "into/a/report.html").exists()


@each_row(
    "name", ["../evil", "/etc/evil", "a/../../evil", "C:evil", "a\\..\\evil", "a\nb", "a/\x1b"]
)
def test_a_name_that_leads_outside(tmp_path, name):
    assert "leads outside" in refused(archive(tmp_path, ("ok", "1"), (name, "x")), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["into", "report.zip"]


@each_row("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device(tmp_path, kind):
    info = zipfile.ZipInfo("results.json")
    info.external_attr = (kind | 0o777) << 16
    assert "a link or a device" in refused(archive(tmp_path, (info, "/etc/passwd")), tmp_path)


def test_a_member_that_is_larger_than_it_says(tmp_path):
    path = archive(tmp_path, ("results.json", b"x" * 100))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    assert refused(path, tmp_path)


def test_too_much_in_total(tmp_path):
    path = archive(tmp_path, *[(f"{n}.json", "x" * 400) for n in range(5)])
    assert "unpacks to more than" in refused(path, tmp_path, total_bytes=1000)


def many_times(path, number, *, declared):
    """Write an archive whose list names one empty member again and again (APPNOTE 4.3)."""
    name = b"a"
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0) + name
    listed = struct.pack(
        *("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, 0, 0),
        *(len(name), 0, 0, 0, 0, 0, 0),
    )
    directory = (listed + name) * number
    end = len(local) + len(directory)
    counts = (declared, declared, len(directory), len(local))
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, *counts)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    full = (0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    path.write_bytes(
        local + directory + end64 + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *full, 0)
    )
    return path


@each_row("declared", [200_000, 1])
def test_a_list_of_members_too_long_to_look_at(tmp_path, declared):
    path = many_times(tmp_path / "report.zip", 200_000, declared=declared)
    tracemalloc.start()
    try:
        assert "the list of its members is larger than 3 MiB" in refused(path, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_list_that_is_not_too_long_is_counted(tmp_path):
    path = many_times(tmp_path / "report.zip", 20_000, declared=1)
    assert "it has 20,000 members, 10,000 at most" in refused(path, tmp_path)


def test_too_many_members(tmp_path):
    path = archive(tmp_path, *[(f"{n}", "") for n in range(5)])
    assert "it has 5 members, 4 at most" in refused(path, tmp_path, members=4)


def test_an_encrypted_member(tmp_path):
    path = archive(tmp_path, ("a", "1"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refused(path, tmp_path)


def test_a_checksum_that_is_wrong(tmp_path):
    path = archive(tmp_path, ("a", "1" * 100), compression=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"1" * 100, b"2" * 100))
    assert "cannot be read as a zip archive" in refused(path, tmp_path)


def small_archive():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("results.json", '{"episodes":[]}' * 20)
    return made.getvalue()


@given(st.data())
def test_no_bytes_raise_anything_else(tmp_path_factory, data):
    content = bytearray(small_archive())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    tmp_path = tmp_path_factory.mktemp("fuzz")
    path = tmp_path / "report.zip"
    path.write_bytes(content)
    try:
        unpack(path, tmp_path)
    except InputError:
        assert list((tmp_path / "into").iterdir()) == []
