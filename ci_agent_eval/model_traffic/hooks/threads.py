"""Threads and processes of an episode belong to it.

Threads take the binding of the thread that starts them, processes the variables of the gateway.

Only our own binding is handed on. A copy of the whole context, as `asyncio.to_thread` makes it,
would show an agent under test values of context variables that it does not see in production.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen
from threading import Thread
from typing import Any

from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch


def list_patches() -> Sequence[Patch]:
    """Return the patches of threads, thread pools (`loop.run_in_executor`) and processes."""
    return (
        Patch(Thread, "start", _wrap_start),
        Patch(ThreadPoolExecutor, "submit", _wrap_submit),
        Patch(Popen, "__init__", _wrap_popen),
    )


def _wrap_popen(original: Method) -> Method:
    def start(process: Popen[Any], *args: Any, **options: Any) -> None:
        recorder = None if attribution.is_suspended() else attribution.get_bound_recorder()
        add_variables = None if recorder is None else recorder.add_child_variables
        if add_variables is not None and len(args) <= _MAX_ARGUMENTS:
            options["env"] = add_variables(options.get("env"))
        original(process, *args, **options)

    return start


_MAX_ARGUMENTS = 10
"""Arguments of `Popen` before `env`, which is nearly always given by name."""


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
