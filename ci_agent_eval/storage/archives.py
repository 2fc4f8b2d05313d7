"""Extraction of untrusted zip archives: all members are checked before any is written.

GitHub's artifacts contain arbitrary data, because a fork's code may have created them.
"""

from __future__ import annotations

import copy
import importlib
import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Self

from ci_agent_eval.errors import InputError, build_install_command

_CHUNK = 1 << 20
_MIB = 1 << 20

_ZSTANDARD = 93
"""Compression method of inspect_ai's logs; zipfile supports it from Python 3.14 on."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
"""Methods that are unpacked in chunks; others would unpack a whole bomb before it is noticed."""

_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,  # unsupported compression method
    EOFError,
    OSError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    IndexError,
    struct.error,
)
"""Errors of zipfile for broken archives."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Size limits; an archive over any of them is refused as a whole."""

    members: int = 10_000
    member_bytes: int = 512 * _MIB
    total_bytes: int = 1024 * _MIB
    ratio: int = 300
    """Unpacked over packed size of a member above `free_bytes`; JSON packs to about 1 in 30."""
    free_bytes: int = _MIB

    @property
    def directory_bytes(self) -> int:
        """Size limit of the member list, for names of about a hundred characters."""
        return max(2 * _MIB, 400 * self.members)


class _BoundedFile(io.BufferedReader):
    """A file that refuses reads of more than a maximum size.

    zipfile reads the member list in one piece, as large as the archive declares, and creates an
    object per member before they can be counted. Our own search for the archive's end could find
    another end than zipfile does.
    """

    def __init__(self, raw: io.FileIO, max_bytes: int) -> None:
        super().__init__(raw)
        self._max_bytes = max_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        """Read like any file; raises InputError if more than the maximum is requested."""
        is_all = size is None or size < 0
        found = super().read(self._max_bytes + 1) if is_all else b""
        if len(found) > self._max_bytes or (size or 0) > self._max_bytes:
            limit = f"{self._max_bytes // _MIB:,} MiB"
            raise InputError(f"the list of its members is larger than {limit}: they are too many")
        return found if is_all else super().read(size)


class ArchiveError(InputError):
    """A refused archive."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.problem = problem
        """The problem, without the archive's name."""


def extract_archive(
    archive: Path, into: Path, *, wanted: Callable[[PurePosixPath], bool], limits: ArchiveLimits
) -> tuple[Path, ...]:
    """Write the wanted members to the empty folder `into`; return their paths, sorted.

    Raises InputError if the archive is broken, too large, or has a member that is not a plain
    file inside the folder; then nothing is written.
    """
    try:
        with (
            _BoundedFile(io.FileIO(archive), limits.directory_bytes) as file,
            zipfile.ZipFile(file) as opened,
        ):
            members = list(_check_members(opened, limits))
            chosen = [(path, info) for path, info in members if wanted(path)]
            return tuple(sorted(_write_member(opened, info, into / path) for path, info in chosen))
    except _BROKEN as error:
        _remove_contents(into)
        raise ArchiveError(archive.name, f"cannot be read as a zip archive ({error})") from None
    except InputError as error:
        _remove_contents(into)
        raise ArchiveError(archive.name, f"{error}; nothing of it is used") from None


def _check_members(
    opened: zipfile.ZipFile, limits: ArchiveLimits
) -> Iterator[tuple[PurePosixPath, zipfile.ZipInfo]]:
    """Yield the files of an archive; raises InputError at a refused member."""
    infos = opened.infolist()
    if len(infos) > limits.members:
        raise InputError(f"it has {len(infos):,} members, {limits.members:,} at most are read")
    total, seen = 0, set()
    for info in infos:
        path = _safe_path(info)
        if path in seen:
            raise InputError(f"it holds {info.filename!r} twice")
        seen.add(path)
        total += info.file_size
        _check_size(info, total, limits)
        if not info.is_dir():
            yield path, info


def _safe_path(info: zipfile.ZipInfo) -> PurePosixPath:
    # The raw name: `filename` is cut at a NUL.
    name = info.orig_filename
    path = PurePosixPath(name)
    is_inside = path.parts and not path.is_absolute() and ".." not in path.parts
    if not is_inside or any(c in name for c in "\\:\0") or not name.isprintable():
        raise InputError(f"the name {name!r} leads outside, or is not a plain name")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InputError(f"{name!r} is a link or a device, not a file")
    if info.flag_bits & 0x1:
        raise InputError(f"{name!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise InputError(f"{name!r} is packed by method {info.compress_type}, which cannot be read")
    return path


def _check_size(info: zipfile.ZipInfo, total: int, limits: ArchiveLimits) -> None:
    if info.file_size > limits.member_bytes:
        raise InputError(
            f"{info.filename!r} unpacks to {info.file_size // _MIB:,} MiB, "
            f"{limits.member_bytes // _MIB:,} MiB at most are read"
        )
    if total > limits.total_bytes:
        raise InputError(f"it unpacks to more than {limits.total_bytes // _MIB:,} MiB")
    packed = max(info.compress_size, 1)
    if info.file_size > limits.free_bytes and info.file_size > limits.ratio * packed:
        raise InputError(
            f"{info.filename!r} unpacks to {info.file_size // packed:,} times its size, "
            f"{limits.ratio} times at most are read"
        )


def _write_member(opened: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_member(opened, info) as source, path.open("xb") as target:
        _copy_member(source, target, info)
    return path


def _open_member(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    """Open one member for reading its unpacked data."""
    if info.compress_type != _ZSTANDARD:
        return opened.open(info)
    try:
        zstd = _import_zstandard()
    except ImportError:
        raise InputError(
            f"{info.filename!r} is packed with Zstandard, which needs Python 3.14 or "
            f"`{build_install_command('inspect')}`"
        ) from None
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # the checksum of the unpacked data, which `_copy_member` checks
    return _ZstandardMember(zstd, opened.open(packed))


class _ZstandardMember:
    """A Zstandard-compressed member, unpacked in chunks as it is read."""

    def __init__(self, zstd: Any, packed: Any) -> None:
        self._broken: type[Exception] = zstd.ZstdError
        self._packed = packed
        self._file = zstd.ZstdFile(packed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._packed.close()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; raises BadZipFile for invalid data."""
        try:
            return bytes(self._file.read(size))
        except self._broken as error:
            raise zipfile.BadZipFile(str(error)) from None


def _import_zstandard() -> Any:
    """Return the standard library's Zstandard module, or its backport; raises ImportError."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return importlib.import_module("backports.zstd")


def _copy_member(source: Any, target: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Copy at most the declared size: the declaration was checked but may be false."""
    left, checksum = info.file_size, 0
    while chunk := source.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise InputError(f"{info.filename!r} is larger than the archive says")
        checksum = zlib.crc32(chunk, checksum)
        target.write(chunk)
    if left or checksum != info.CRC:
        raise InputError(f"{info.filename!r} is not what the archive says: it is damaged")


def _remove_contents(folder: Path) -> None:
    """Delete everything in the folder of a refused archive."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
