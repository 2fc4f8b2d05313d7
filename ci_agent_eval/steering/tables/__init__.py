"""Tables of steering in data files: options, names, and programs that run other programs."""

from __future__ import annotations

from pathlib import Path


def read_table(name: str) -> list[str]:
    """Return the lines of a table without its comments; an indented line continues the last one."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8").replace("\n    ", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def read_sections(name: str) -> dict[str, tuple[str, ...]]:
    """Return the words of a table by their sections, which begin with `[NAME]`."""
    sections: dict[str, list[str]] = {}
    words: list[str] = []
    for line in read_table(name):
        if line.startswith("["):
            words = sections.setdefault(line.strip("[]"), [])
        else:
            words += line.split()
    return {section: tuple(words) for section, words in sections.items()}
