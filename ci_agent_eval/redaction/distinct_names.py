"""Names that stay distinct after redaction. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def make_distinct_names(names: Iterable[str], redact: Callable[[str], str]) -> dict[str, str]:
    """Map each name to its redacted form, without duplicates.

    Equal redacted names get numbers (`#2`, `#3`), in the order of the full names. A name
    without a secret is unchanged.
    """
    clean = {name: redact(name) for name in sorted(set(names))}
    taken = {name for name, redacted in clean.items() if name == redacted}
    last: dict[str, int] = {}
    for name, redacted in clean.items():
        if name == redacted:
            continue
        number = last.get(redacted, 0) + 1
        while (numbered := _add_number(redacted, number)) in taken:
            number += 1
        last[redacted] = number
        taken.add(numbered)
        clean[name] = numbered
    return clean


def _add_number(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"
