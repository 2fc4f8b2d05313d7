"""Report formats of installed packages, which get the content of `verdict.json`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from ci_agent_eval.config.entry_points import (
    EXTENSION_ERRORS,
    FORMATS,
    Extension,
    load_extension,
)
from ci_agent_eval.errors import InputError

_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_MAX_PREFIX = 100
_MIN_LETTERS = 8
"""Letters of a prefix; one such as `{` would recognize files of other programs."""


@dataclass(frozen=True, slots=True)
class InstalledFormat:
    """A report format of an installed package."""

    file_name: str
    prefix: str
    """Text that each of its files begins with; another file of its name is not overwritten."""
    extension: Extension
    writer: Any

    def render(self, verdict: str) -> str:
        """Return the file's text from the text of `verdict.json`. Raises InputError."""
        try:
            text = self.writer.render(json.loads(verdict))
        except EXTENSION_ERRORS as error:
            raise self.extension.build_error("failed", error) from None
        if not isinstance(text, str) or not text.startswith(self.prefix):
            raise self.extension.build_error(f"returned no text that begins {self.prefix!r}")
        return text.encode("utf-8", "replace").decode()


def load_format(name: str, reserved: frozenset[str]) -> InstalledFormat:
    """Load a format; `reserved` are names of files that it must not have. Raises InputError."""
    extension = load_extension(FORMATS, name)
    if extension is None:
        raise InputError(
            f"{FORMATS} {name!r}: no installed package has it; leave it out of formats"
        )
    writer = extension.create()
    file_name, prefix = (getattr(writer, name, None) for name in ("file_name", "prefix"))
    if not isinstance(file_name, str) or not _FILE_NAME.fullmatch(file_name):
        raise extension.build_error("needs a file_name of lower-case letters, digits and `._-`")
    if file_name in reserved:
        raise extension.build_error(f"has the file_name {file_name!r}, which another file has")
    if not _is_prefix(prefix):
        raise extension.build_error(
            f"needs a prefix of {_MIN_LETTERS} letters or more, at most {_MAX_PREFIX} "
            "characters: the text that only its files begin with"
        )
    if not callable(getattr(writer, "render", None)):
        raise extension.build_error("has no method render")
    return InstalledFormat(file_name, prefix, extension, writer)


def _is_prefix(text: object) -> TypeGuard[str]:
    if not isinstance(text, str) or len(text) > _MAX_PREFIX:
        return False
    return sum(map(str.isalpha, text)) >= _MIN_LETTERS
