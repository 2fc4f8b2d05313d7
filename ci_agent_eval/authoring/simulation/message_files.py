"""Files in the user's messages: images, documents, sound. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from ci_agent_eval.contract.trajectory import Attachment, check_attached_bytes
from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A file in a user's message. Raises InputError for invalid arguments."""

    data: bytes = field(repr=False)
    media_type: str
    """Such as `image/png`."""
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes) or not self.data:
            raise InputError("MessageFile.data: must be bytes that are not empty")
        if not isinstance(self.media_type, str) or "/" not in self.media_type:
            raise InputError(
                f"MessageFile.media_type: must be a type such as image/png, got {self.media_type!r}"
            )

    @property
    def attachment(self) -> Attachment:
        """The record of the file in a turn, without its content."""
        digest = hashlib.sha256(self.data).hexdigest()
        return Attachment(media_type=self.media_type, sha256=digest, size_bytes=len(self.data))


@dataclass
class AttachedBytes:
    """Counts the files of a conversation."""

    total: int = 0

    def add(self, owner: str, files: Iterable[MessageFile]) -> None:
        """Add the files of a message. Raises InputError, and adds none, if they are too large."""
        total = self.total + sum(len(file.data) for file in files)
        try:
            check_attached_bytes(total)
        except ValueError as error:
            raise InputError(f"{owner}: {error}") from None
        self.total = total


def parse_files(owner: str, given: object) -> tuple[MessageFile, ...]:
    """Return a message's files as a tuple. Raises InputError."""
    files = given if isinstance(given, list | tuple) else (given,)
    for file in files:
        if not isinstance(file, MessageFile):
            raise InputError(f"{owner}: must be MessageFiles, got a {type(file).__name__}")
    return tuple(files)
