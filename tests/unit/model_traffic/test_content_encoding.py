"""Bodies are recorded decoded, whichever library a client decodes with."""

from __future__ import annotations

import gzip
import sys
import zlib
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.model_traffic.hooks.content_encoding import (
    UnreadableEncodingError,
    create_decoder,
)
from tests.tables import each_row

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


ENCODINGS = {
    "gzip": gzip.compress,
    " GZIP ": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, identity": raw_deflate,
    "zstd": zstd.compress,
    "gzip, zstd": lambda data: zstd.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.binary(min_size=20), size=st.integers(2, 30))
def test_pieces_are_decoded(encoding, data, size):
    encoded = ENCODINGS[encoding](data)
    decode = create_decoder(encoding)
    pieces = [encoded[at : at + size] for at in range(0, len(encoded), size)]
    assert b"".join(decode(piece) for piece in pieces) == data


@each_row("encoding", ["", "identity", " , "])
def test_nothing_is_encoded(encoding):
    assert create_decoder(encoding) is None


def test_an_unknown_encoding_is_said():
    with pytest.raises(UnreadableEncodingError, match="content encoding zip cannot be read"):
        create_decoder("zip")


@each_row("encoding", ["gzip", "deflate", "zstd"])
def test_other_bytes_are_said(encoding):
    with pytest.raises(UnreadableEncodingError, match=f"content encoding {encoding} cannot be"):
        create_decoder(encoding)(b"\xffthis is plain text")
