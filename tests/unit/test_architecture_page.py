"""docs/architecture.md names the import contracts of pyproject.toml."""

from __future__ import annotations

from scripts import architecture


def test_the_page_is_generated_from_the_contracts():
    page = architecture.PAGE.read_text("utf-8")
    assert architecture.render_page(page) == page, "run `make docs`"


def test_every_package_is_on_exactly_one_level():
    named = sorted(name for level in architecture.read_levels() for name in level)
    found = [path.parent.name for path in architecture.PACKAGE.glob("*/__init__.py")]
    assert named == sorted([*found, "errors"])
