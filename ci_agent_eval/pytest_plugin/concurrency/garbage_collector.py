"""Python's garbage collector while episodes run concurrently.

It scans all objects more often the more objects are created; in a process full of tests and clients
this takes a fourth of the time. So it runs less often.

Existing objects are not frozen: Hypothesis, for example, finds the referrers of an object with
`gc.get_referrers`, which skips frozen objects.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

THRESHOLD = 20_000
"""Number of created and not freed objects that triggers a collection; a conversation of a few turns
creates about as many."""


def collect_less_often() -> Callable[[], None]:
    """Run the garbage collector less often; return a function that restores the settings."""
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] == 0 or before[0] >= THRESHOLD:
        return lambda: None  # set on purpose
    gc.collect()
    gc.set_threshold(THRESHOLD, *before[1:])

    def restore() -> None:
        gc.set_threshold(*before)

    return restore
