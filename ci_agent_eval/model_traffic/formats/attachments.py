"""Attachments of messages: media type, hash and size of their bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.trajectory import Attachment

# Google's clients use the alphabet of addresses. Line ends and missing padding are allowed.
_STANDARD = str.maketrans({"-": "+", "_": "/", "=": "", "\r": "", "\n": ""})
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,", re.IGNORECASE)


def read_base64(data: object, media_type: object) -> Attachment:
    """Return the attachment of base64 data; without a hash if it cannot be decoded."""
    name = clean_text(media_type) if isinstance(media_type, str) and media_type else None
    if not isinstance(data, str):
        return Attachment(media_type=name)
    text = data.translate(_STANDARD)
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return Attachment(media_type=name)
    digest = hashlib.sha256(content).hexdigest()
    return Attachment(media_type=name, sha256=digest, size_bytes=len(content))


def read_url(url: object, media_type: object = None) -> Attachment:
    """Return the attachment of a data URL; of another address only the media type."""
    found = _DATA_URL.match(url) if isinstance(url, str) else None
    if found is None:
        return read_base64(None, media_type)
    return read_base64(found.string[found.end() :], found.group(1) or media_type)
