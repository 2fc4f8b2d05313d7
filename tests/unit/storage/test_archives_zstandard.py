"""Members packed with Zstandard, as inspect_ai packs its logs, under the same limits as others."""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib

import pytest

from tests.unit.storage.test_archives import refused, unpack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTANDARD = 93


def archive(tmp_path, content, *, packed=None, size=None, method=ZSTANDARD):
    """A zip archive with one member: made as a stored one, then told how it is packed."""
    packed = zstd.compress(content) if packed is None else packed
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("header.json", packed)
    data = bytearray(path.read_bytes())
    size = len(content) if size is None else size
    for start, offset in ((data.index(b"PK\x03\x04"), 8), (data.index(b"PK\x01\x02"), 10)):
        struct.pack_into("<H", data, start + offset, method)
        struct.pack_into("<I", data, start + offset + 6, zlib.crc32(content))
        struct.pack_into("<I", data, start + offset + 14, size)
    path.write_bytes(data)
    return path


def test_what_was_packed_is_what_is_written(tmp_path):
    content = b'{"version": 2}' * 1000
    (file,) = unpack(archive(tmp_path, content), tmp_path)
    assert file.read_bytes() == content


def test_a_member_that_unpacks_to_more_than_it_says_is_not_unpacked_to_its_end(tmp_path):
    bomb = zstd.compress(bytes(64 << 20))
    path = archive(tmp_path, b"small", packed=bomb)
    assert "larger than the archive says" in refused(path, tmp_path)


def test_the_ratio_is_capped(tmp_path):
    assert "times its size" in refused(archive(tmp_path, bytes(8 << 20)), tmp_path)


def test_a_member_that_unpacks_to_less_than_it_says(tmp_path):
    path = archive(tmp_path, b"{}" * 50, size=200)
    assert "damaged" in refused(path, tmp_path)


def test_other_bytes_than_the_checksum_is_of(tmp_path):
    path = archive(tmp_path, b"right", packed=zstd.compress(b"wrong"))
    assert "damaged" in refused(path, tmp_path)


@pytest.mark.parametrize("packed", [b"", b"no zstandard at all", zstd.compress(b"{}" * 50)[:-3]])
def test_bytes_that_are_no_zstandard(tmp_path, packed):
    path = archive(tmp_path, b"{}" * 50, packed=packed)
    refused(path, tmp_path)


def test_without_the_package_it_says_what_is_missing(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    told = refused(archive(tmp_path, b"{}"), tmp_path)
    assert "packed with Zstandard" in told
    assert "ci-agent-eval[inspect]" in told


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 9])
def test_methods_that_unpack_a_bomb_whole_are_refused(tmp_path, method):
    told = refused(archive(tmp_path, b"{}", method=method), tmp_path)
    assert f"packed by method {method}, which cannot be read" in told
