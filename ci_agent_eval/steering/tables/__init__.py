"""Tables of steering in data files: pytest's options, and programs that run other programs."""

from __future__ import annotations

from pathlib import Path


def read_table(name: str) -> list[str]:
    """Return the lines of a table without its comments; an indented line continues the last one."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8").replace("\n    ", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
