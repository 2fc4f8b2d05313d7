"""The hook by which `opik.hooks` lets others set the arguments of its HTTP client."""

from __future__ import annotations

from typing import Any

_hooks: list[HttpxClientHook] = []


class HttpxClientHook:
    def __init__(self, client_modifier: Any, client_init_arguments: dict[str, Any] | None) -> None:
        self.arguments = client_init_arguments or {}


def add_httpx_client_hook(hook: HttpxClientHook) -> None:
    _hooks.append(hook)


def timeout_s() -> float:
    """Return the timeout of a request: Opik's own, unless a hook has set another one."""
    given = [hook.arguments["timeout"] for hook in _hooks if "timeout" in hook.arguments]
    return float(given[-1]) if given else 100.0
