"""How `report.html` begins, by which it is known as ours; apart, so that it costs no Jinja2."""

from __future__ import annotations

from typing import Final

PAGE_BEGINNING: Final = "<!doctype html>\n<!-- agent-eval report -->\n"
