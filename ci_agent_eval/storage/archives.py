"""Opening a zip archive that nobody vouches for: all of it is checked before any of it is used.

What GitHub hands out as an artifact was made by whoever ran the job: a fork's code too.
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

from ci_agent_eval.errors import InputError

_CHUNK = 1 << 20
_MIB = 1 << 20

_ZSTANDARD = 93
"""The method that inspect_ai packs its logs by; zipfile has it from Python 3.14 on."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
"""Those that are unpacked piece by piece; others would unpack a bomb whole before it is seen."""

_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,  # a compression method nobody has
    EOFError,
    OSError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    IndexError,
    struct.error,
)
"""What zipfile raises over bytes that are no archive, or no longer one."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What an archive may hold at most; over any of these it is refused as a whole."""

    members: int = 10_000
    member_bytes: int = 512 * _MIB
    total_bytes: int = 1024 * _MIB
    ratio: int = 300
    """Unpacked over packed size, of a member above `free_bytes`: JSON packs to about 1 in 30."""
    free_bytes: int = _MIB

    @property
    def directory_bytes(self) -> int:
        """What the list of the members may take, with names of some hundred characters."""
        return max(2 * _MIB, 400 * self.members)


class _BoundedFile(io.BufferedReader):
    """A file of which nobody reads more at once than this.

    zipfile reads the list of the members in one piece, as large as the archive says, and makes
    an object of each before anybody can count them. A look at the archive's end of our own
    could find another end than zipfile does.
    """

    def __init__(self, raw: io.FileIO, most: int) -> None:
        super().__init__(raw)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file; raises InputError where more is asked for, or is there."""
        is_all = size is None or size < 0
        found = super().read(self._most + 1) if is_all else b""
        if len(found) > self._most or (size or 0) > self._most:
            most = f"{self._most // _MIB:,} MiB"
            raise InputError(f"the list of its members is larger than {most}: they are too many")
        return found if is_all else super().read(size)


class ArchiveError(InputError):
    """An archive that is not used."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.problem = problem
        """What is wrong with it, without its name."""


def extract_archive(
    archive: Path, into: Path, *, wanted: Callable[[PurePosixPath], bool], limits: ArchiveLimits
) -> tuple[Path, ...]:
    """Write the wanted members below `into`, which is empty; return their paths, sorted.

    Raises InputError with one sentence where the archive is broken, too large, or has a member
    that would not stay a plain file inside; then nothing of it is written.
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
    """Yield the files of an archive; raise InputError at what may not be in one."""
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
    # The name as it stands in the archive: `filename` is cut at a NUL.
    name = info.orig_filename
    path = PurePosixPath(name)
    is_inside = path.parts and not path.is_absolute() and ".." not in path.parts
    if not is_inside or any(c in name for c in "\\:\0") or not name.isprintable():
        raise InputError(f"the name {name!r} leads outside, or is no plain name")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InputError(f"{name!r} is a link or a device, not a file")
    if info.flag_bits & 0x1:
        raise InputError(f"{name!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise InputError(f"{name!r} is packed by method {info.compress_type}, which is not read")
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
    """Open one member to read what is packed in it."""
    if info.compress_type != _ZSTANDARD:
        return opened.open(info)
    try:
        zstd = _import_zstandard()
    except ImportError:
        raise InputError(
            f"{info.filename!r} is packed with Zstandard, which needs Python 3.14 or "
            "`pip install 'ci-agent-eval[inspect]'`"
        ) from None
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # it is that of what is unpacked: `_copy` holds it against that
    return _ZstandardMember(zstd, opened.open(packed))


class _ZstandardMember:
    """A member packed with Zstandard, unpacked no further than it is read."""

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
        """Return up to `size` bytes; raises BadZipFile for what is no Zstandard."""
        try:
            return bytes(self._file.read(size))
        except self._broken as error:
            raise zipfile.BadZipFile(str(error)) from None


def _import_zstandard() -> Any:
    """Return the standard library's Zstandard, or its backport; raises ImportError."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return importlib.import_module("backports.zstd")


def _copy_member(source: Any, target: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Copy no more than the archive declares: its own figures were checked, and may lie."""
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
    """Leave nothing of a refused archive behind."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
