"""The beginning of `report.html`, by which it is recognized without importing Jinja2."""

from __future__ import annotations

from typing import Final

PAGE_BEGINNING: Final = "<!doctype html>\n<!-- agent-eval report -->\n"
