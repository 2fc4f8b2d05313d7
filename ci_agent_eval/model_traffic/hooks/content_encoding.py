"""Decoding of bodies in a content encoding: gzip and deflate, and others if a library is there."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

ContentDecoder = Callable[[bytes], bytes]

# The libraries that the HTTP clients use: a client announces only encodings that it has one for.
_LIBRARIES = {
    "br": (("brotli", "Decompressor"), ("brotlicffi", "Decompressor")),
    "zstd": (
        ("compression.zstd", "ZstdDecompressor"),
        ("backports.zstd", "ZstdDecompressor"),
        ("zstandard", "ZstdDecompressor"),
    ),
}


class UnreadableEncodingError(Exception):
    """Raised for a body that cannot be decoded."""


def create_decoder(encodings: str) -> ContentDecoder | None:
    """Create the decoder of a `content-encoding` header; None if nothing is encoded.

    Raises UnreadableEncodingError for an encoding without a library; so does the decoder for
    bytes that are not in the encoding.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    decoders = [_create_one(name) for name in names if name not in ("", "identity")]
    if not decoders:
        return None

    def decode(chunk: bytes) -> bytes:
        try:
            for decoder in reversed(decoders):
                chunk = decoder(chunk)
        except Exception as error:  # each library has another class
            message = f"the answer's content encoding {encodings} cannot be read: {error}"
            raise UnreadableEncodingError(message) from error
        return chunk

    return decode


def _create_one(name: str) -> ContentDecoder:
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress
    if name == "deflate":
        return _Deflate().decode
    for module_name, class_name in _LIBRARIES.get(name, ()):
        try:
            decompressor = getattr(import_module(module_name), class_name)()
        except ImportError:
            continue
        return _find_method(decompressor)
    raise UnreadableEncodingError(f"the answer's content encoding {name} cannot be read")


def _find_method(decompressor: Any) -> ContentDecoder:
    if hasattr(decompressor, "decompressobj"):  # zstandard
        decompressor = decompressor.decompressobj()
    method: ContentDecoder = getattr(decompressor, "decompress", None) or decompressor.process
    return method


class _Deflate:
    """Decodes deflate, with the zlib header that the standard asks for or without one."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj()
        self._is_first = True

    def decode(self, chunk: bytes) -> bytes:
        is_first, self._is_first = self._is_first, False
        try:
            return self._decompressor.decompress(chunk)
        except zlib.error:
            if not is_first:
                raise
            self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._decompressor.decompress(chunk)
