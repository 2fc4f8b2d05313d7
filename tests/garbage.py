"""Collect what earlier tests left, so that no later test is charged with it.

A client of an SDK is part of a reference cycle. If nobody closes it, the collector does, in whichever
test it happens to run; there the ResourceWarning of its connection is an error.
"""

from __future__ import annotations

import gc
import warnings


def collect_garbage() -> None:
    """Free unreachable objects; connections and files that are still open may be among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
