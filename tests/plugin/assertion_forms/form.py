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
    raises: bool = False
    """Whether something else than an assertion ends it, which fails the test."""

    @property
    def outcome(self) -> str:
        """Of the episode: once an assertion failed, no exception makes it an error."""
        if not all(passed for _, passed, _, _ in self.expected):
            return "failed"
        return "error" if self.raises else "passed"


def form(
    name: str, source: str, *expected: tuple[int, bool, str, str | None], raises: bool = False
) -> Form:
    """Return the form; `FORM` stands for its name in its texts.

    Lines count from the first line of the source.
    """
    text = dedent(source).strip("\n").replace("FORM", name)
    expected = tuple(
        (line, passed, said.replace("FORM", name), reason and reason.replace("FORM", name))
        for line, passed, said, reason in expected
    )
    return Form(name, text, expected, raises)
