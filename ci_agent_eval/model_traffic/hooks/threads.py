"""Threads of an episode belong to it: they take the binding of the thread that starts them.

Only our own binding is handed on. A copy of the whole context, as `asyncio.to_thread` makes it,
would show an agent under test values of context variables that it does not see in production.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch


def list_patches() -> Sequence[Patch]:
    """Return the patches of threads and of thread pools, and so of `loop.run_in_executor`."""
    return Patch(Thread, "start", _wrap_start), Patch(ThreadPoolExecutor, "submit", _wrap_submit)


def _wrap_start(original: Method) -> Method:
    def start(thread: Thread) -> None:
        binding = attribution.get_binding()
        if binding is not None:
            run = thread.run

            def run_bound() -> None:
                vars(thread).pop("run", None)  # else the thread and this function keep each other
                with binding.use():
                    run()

            thread.run = run_bound  # type: ignore[method-assign]
        original(thread)

    return start


def _wrap_submit(original: Method) -> Method:
    def submit(pool: Any, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        binding = attribution.get_binding()
        if binding is None:
            return original(pool, function, *args, **options)
        return original(pool, _run_bound, binding, function, args, options)

    return submit


def _run_bound(
    binding: attribution.Binding, function: Callable[..., Any], args: Any, options: Any
) -> Any:
    with binding.use():
        return function(*args, **options)
