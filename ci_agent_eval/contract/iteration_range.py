"""Parse the number of iterations of a scenario: fixed, or decided during the run.

pytest imports this module at every start, so it does not import pydantic.
"""

from __future__ import annotations

import re
from typing import NamedTuple

AUTO = "auto"
"""The number that is decided during the run."""

AUTO_PATTERN = r"^auto(:[1-9][0-9]{0,2}-[1-9][0-9]{0,2})?$"
"""`auto`, or `auto:5-40` with a minimum and a maximum."""

_MINIMUM = 3
_MAXIMUM = 60
_FORMS = 'a whole number, 1 or more, "auto" (3 to 60 as needed), or a range such as "auto:5-40"'


class IterationRange(NamedTuple):
    """How often a test runs."""

    total: int
    """Iterations; the maximum if they are adaptive."""
    minimum: int | None = None
    """Adaptive iterations that always run; None: all run."""

    @property
    def guaranteed(self) -> int:
        """Iterations that always run."""
        return self.total if self.minimum is None else self.minimum


def format_iteration(number: int, limits: IterationRange) -> str:
    """Return an iteration's part of the node id; the number starts at 1."""
    return f"{number}-of-{AUTO if limits.minimum else limits.total}"


def remove_iteration(nodeid: str, number: int, limits: IterationRange) -> str:
    """Return a node id without its iteration, with the user's own parameter ids."""
    if limits.total == 1:
        return nodeid
    label = format_iteration(number, limits)
    nodeid = nodeid.removesuffix(f"[{label}]")
    shortened = nodeid.removesuffix(f"-{label}]")
    return nodeid if shortened == nodeid else f"{shortened}]"


def parse_iterations(value: object) -> IterationRange:
    """Parse a number of iterations, as a marker names it; raises ValueError with a sentence."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return IterationRange(value)
    if not isinstance(value, str) or not re.match(AUTO_PATTERN, value):
        raise ValueError(f"must be {_FORMS} (got {value!r})")
    if value == AUTO:
        return IterationRange(_MAXIMUM, _MINIMUM)
    low, high = map(int, value.partition(":")[2].split("-"))
    if low >= high:
        raise ValueError(f"the maximum must be above the minimum (got {value!r})")
    return IterationRange(high, low)


def parse_iterations_text(text: str) -> IterationRange:
    """Parse the text of an option; raises ValueError with a sentence."""
    is_count = text.isascii() and text.isdigit() and int(text) > 0
    return parse_iterations(int(text) if is_count else text)
