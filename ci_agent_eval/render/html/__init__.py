"""The report and its episodes as one HTML page that uses no network."""

from __future__ import annotations

from typing import Final

PAGE_BEGINNING: Final = "<!doctype html>\n<!-- agent-eval report -->\n"
