"""One form of assertion: how it is written, and what an evaluation records of it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Form:
    name: str
    source: str
    expected: tuple[tuple[int, bool, str, str | None], ...]
    """Line, whether it passed, its description, the beginning of its reason."""
    outcome: str = ""
    """Of the episode; by default as the assertions say."""


def form(
    name: str, source: str, *expected: tuple[int, bool, str, str | None], outcome: str = ""
) -> Form:
    """Return the form; `FORM` stands for its name in its texts.

    Lines count from the first line of the source.
    """
    text = dedent(source).strip("\n").replace("FORM", name)
    expected = tuple(
        (line, passed, said.replace("FORM", name), reason and reason.replace("FORM", name))
        for line, passed, said, reason in expected
    )
    by_default = "passed" if all(passed for _, passed, _, _ in expected) else "failed"
    return Form(name, text, expected, outcome or by_default)
