"""Pictures in 256 colours: of a page of text nobody sees it, and they are half as large.

Chromium reads the picture (`getImageData`), NumPy picks the colours, and the PNG is written here:
https://www.w3.org/TR/png-3/, colour type 3.
"""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser

COLOURS = 256
_PIXELS = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([pixels]));
  await new Promise((done) => reader.addEventListener("load", done));
  return [image.width, image.height, reader.result.split(",")[1]];
}"""


def shrink(browser: Browser, picture: Path) -> None:
    """Write a PNG anew with as many colours as a palette holds; all others become the nearest."""
    page = browser.new_page()
    source = base64.b64encode(picture.read_bytes()).decode("ascii")
    width, height, data = page.evaluate(_PIXELS, f"data:image/png;base64,{source}")
    page.close()
    pixels = np.frombuffer(base64.b64decode(data), np.uint8).reshape(-1, 4)[:, :3]
    found, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = _palette(found.astype(int), counts)
    nearest = [_nearest(palette, colour) for colour in found.astype(int)]
    rows = np.array(nearest, np.uint8)[places.reshape(-1)].reshape(height, width)
    picture.write_bytes(_png(rows, palette))


def _palette(found: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the commonest colours, and one after the other what is worst shown by those so far."""
    chosen = list(np.argsort(-counts, kind="stable")[: COLOURS // 2])
    distances = np.min([((found - found[one]) ** 2).sum(axis=1) for one in chosen], axis=0)
    while len(chosen) < min(COLOURS, len(found)):
        chosen.append(int((distances * np.sqrt(counts)).argmax()))
        distances = np.minimum(distances, ((found - found[chosen[-1]]) ** 2).sum(axis=1))
    return found[chosen].astype(np.uint8)


def _nearest(palette: np.ndarray, colour: np.ndarray) -> int:
    return int(((palette.astype(int) - colour) ** 2).sum(axis=1).argmin())


def _png(rows: np.ndarray, palette: np.ndarray) -> bytes:
    height, width = rows.shape
    # A zero before each row: it is not filtered.
    raw = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
