"""The model calls of this process as its HTTP clients send them.

These are httpx, httpx2, urllib3, aiohttp, and lm15 inside DSPy.

`install` replaces a few methods of the clients that are imported, and of the others as soon as
they are; it imports none. Requests in a model format go to the recorder of their episode
(`attribution.py`), all others pass. Not seen: other clients (`http.client`, `urllib.request`,
pycurl, native code), WebSockets, and subprocesses, for which there is the gateway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ci_agent_eval.model_traffic.hooks import (
    aiohttp_sessions,
    httpx_clients,
    lm15_transports,
    threads,
    urllib3_pools,
)
from ci_agent_eval.model_traffic.hooks.patches import LibraryPatches

_lock = threading.Lock()
_count = 0
_restore_threads: list[Callable[[], None]] = []
_libraries = LibraryPatches(
    {
        "aiohttp": aiohttp_sessions.list_patches,
        "dspy._vendor.lm15.transports": lm15_transports.list_patches,
        "httpx": httpx_clients.list_patches,
        "httpx2": httpx_clients.list_patches,
        "urllib3": urllib3_pools.list_patches,
    }
)


def install() -> None:
    """Install the hooks; each call needs a call of `uninstall`."""
    global _count  # noqa: PLW0603 - the patched classes are global too
    with _lock:
        _count += 1
        if _count == 1:
            _restore_threads.extend(patch.apply() for patch in threads.list_patches())
            _libraries.install()


def uninstall() -> None:
    """Restore the clients' methods, unless others still need the hooks."""
    global _count  # noqa: PLW0603 - the patched classes are global too
    with _lock:
        _count -= 1
        if _count == 0:
            _libraries.uninstall()
            while _restore_threads:
                _restore_threads.pop()()


@contextmanager
def use() -> Iterator[None]:
    """Install the hooks for the `with` block."""
    install()
    try:
        yield
    finally:
        uninstall()
