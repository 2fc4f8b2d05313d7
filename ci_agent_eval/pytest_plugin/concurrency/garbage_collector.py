"""Python's garbage collector while episodes run side by side.

It looks through everything that lives, again and again, the more often the more is made; in a
process full of tests and clients that is a fourth of the time. So it looks less often.

What is there when the run begins is not frozen: Hypothesis, for one, asks with
`gc.get_referrers` who refers to an object, and what is frozen is not found.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

THRESHOLD = 20_000
"""Objects made and not freed after which it looks for those that only know each other; a
conversation of a few turns makes about as many."""


def collect_less_often() -> Callable[[], None]:
    """Let it look less often from now on; return what puts it back."""
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] == 0 or before[0] >= THRESHOLD:
        return lambda: None  # somebody has set it for a reason
    gc.collect()
    gc.set_threshold(THRESHOLD, *before[1:])

    def restore() -> None:
        gc.set_threshold(*before)

    return restore
