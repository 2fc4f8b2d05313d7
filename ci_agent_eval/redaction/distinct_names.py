"""Names that stay apart when the secrets in which they differ are gone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def make_distinct_names(names: Iterable[str], redact: Callable[[str], str]) -> dict[str, str]:
    """Return what each name becomes without secrets, and no two the same.

    Names that would be are told apart by numbers (`#2`, `#3`), in the order of the full
    names. A name without a secret stays as it is.
    """
    clean = {name: redact(name) for name in sorted(set(names))}
    taken = {name for name, shown in clean.items() if name == shown}
    last: dict[str, int] = {}
    for name, shown in clean.items():
        if name == shown:
            continue
        number = last.get(shown, 0) + 1
        while (numbered := _add_number(shown, number)) in taken:
            number += 1
        last[shown] = number
        taken.add(numbered)
        clean[name] = numbered
    return clean


def _add_number(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"
