"""The arithmetic of a sliding window: what fits into any minute, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Entry:
    """What one request takes of a window; corrected once it is known."""

    at: float
    amount: float


def wait_s(
    entries: Sequence[Entry], limit: float, span_s: float, now: float, amount: float
) -> float:
    """Return how long `amount` waits behind entries in the order of their time.

    What is beyond the limit waits for an empty window. Entries of before the window of `now`
    count, too: take them out first.
    """
    room = limit - sum(entry.amount for entry in entries)
    if amount <= room or not entries:
        return 0.0
    for entry in entries:
        room += entry.amount
        if amount <= room:
            return max(entry.at + span_s - now, 0.0)
    return max(entries[-1].at + span_s - now, 0.0)
