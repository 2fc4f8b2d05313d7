"""Validation of declared values; each error names the declaration and its field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import cast, get_args

from ci_agent_eval.contract.stops import AgentStop
from ci_agent_eval.errors import InputError


def field_error(owner: str, field: str, requirement: str) -> InputError:
    """Return the error for a field, with the requirement that it breaks."""
    return InputError(f"{owner}.{field}: {requirement}")


def require_text(owner: str, field: str, value: object, *, optional: bool = False) -> None:
    """Refuse anything but a text that is not blank (or None, if `optional`)."""
    if value is None and optional:
        return
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise field_error(owner, field, f"must be a text that is not empty, got {value!r}")


def require_number(
    owner: str, field: str, value: object, *, least: float, whole: bool = False, above: bool = False
) -> None:
    """Refuse anything but a finite number of at least `least` (above it, with `above`)."""
    kinds = (int,) if whole else (int, float)
    bound = f"{'above' if above else 'of at least'} {least:g}"
    kind = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise field_error(owner, field, f"must be {kind} {bound}, got {value!r}")
    if value < least or (above and value == least):
        raise field_error(owner, field, f"must be {kind} {bound}, got {value!r}")


LONGEST_WAIT_S = 3_600.0
"""Limit in seconds for one answer; a larger value is probably in milliseconds."""
LONGEST_RUN_S = 86_400.0
"""Limit in seconds for a whole run."""


def require_seconds(
    owner: str, field: str, value: object, *, limit: float = LONGEST_WAIT_S
) -> None:
    """Refuse anything but seconds above 0 and up to `limit`; larger values must be milliseconds."""
    require_number(owner, field, value, least=0, above=True)
    if isinstance(value, int | float) and value > limit:
        raise field_error(
            owner,
            field,
            f"is in seconds, at most {limit:g}, got {value:g}, which is {value / 3600:.1f} hours; "
            f"if it is in milliseconds, write {value / 1000:g}",
        )


def require_optional_number(
    owner: str, field: str, value: object, *, least: float, whole: bool = False
) -> None:
    """Check a number like `require_number`; None means "not set"."""
    if value is not None:
        require_number(owner, field, value, least=least, whole=whole)


def parse_texts(owner: str, field: str, value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple; refuse a bare string, which would become its letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise field_error(owner, field, f"must be a list of texts, got {value!r}")
    items = tuple(value)
    if not all(isinstance(item, str) and "\0" not in item for item in items):
        raise field_error(owner, field, f"must be a list of texts, got {items!r}")
    return items


def parse_text_mapping(owner: str, field: str, value: object) -> Mapping[str, str]:
    """Return a copy of a mapping of texts; errors never quote its values, which may be secret."""
    if not isinstance(value, Mapping):
        raise field_error(owner, field, f"must map names to texts, got a {type(value).__name__}")
    for key, item in value.items():
        if not isinstance(key, str) or not key or not isinstance(item, str):
            raise field_error(owner, field, f"must map names to texts; see the entry {key!r}")
    return dict(value)


def parse_stops(owner: str, field: str, value: object) -> frozenset[AgentStop]:
    """Return one or several stop reasons as a set; refuse reasons that are no agent failure."""
    names = parse_texts(owner, field, (value,) if isinstance(value, str) else value)
    for stop in names:
        require_one_of(owner, field, stop, get_args(AgentStop))
    return frozenset(cast("tuple[AgentStop, ...]", names))


def require_one_of(owner: str, field: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a value that is not in `known`."""
    if value not in known:
        raise field_error(owner, field, f"must be one of {', '.join(known)}; got {value!r}")
