"""The pictures of the documents are there, and small: the repository keeps every version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = {
    (page.parent / target).resolve()
    for page in PAGES
    for target in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text("utf-8"))
}


def test_every_picture_is_shown_and_every_one_shown_is_there():
    assert set((ROOT / "docs/pictures").rglob("*.png")) == SHOWN


@pytest.mark.parametrize("picture", sorted(SHOWN), ids=lambda path: path.name)
def test_a_picture_is_a_small_png(picture):
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) <= 200_000
