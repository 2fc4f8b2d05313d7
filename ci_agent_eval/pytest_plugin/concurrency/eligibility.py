"""Whether an episode may run concurrently; otherwise it runs alone, and a note says why."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest import skipping

from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.shared_conversations import find_session_name
from ci_agent_eval.pytest_plugin.concurrency import held_changes
from ci_agent_eval.pytest_plugin.concurrency.loop_members import (
    get_test_function,
    is_async,
    is_from_pytest_asyncio,
    runs_coroutine,
)
from ci_agent_eval.pytest_plugin.evaluation import measurement

ALONE_FIXTURE = "episode_alone"
"""Name of the fixture that makes a test run alone, used by the test or by one of its fixtures."""

ALONE_ARGUMENT = "alone"
"""Name of the marker's argument."""

EXCLUSIVE_FIXTURES = frozenset(
    {
        ALONE_FIXTURE,
        # Process-wide state: streams, log handlers, warnings and modules.
        "capfd",
        "capfdbinary",
        "caplog",
        "capsys",
        "capsysbinary",
        "capteesys",
        "class_mocker",
        "mocker",
        "module_mocker",
        "monkeypatch",
        "package_mocker",
        "pytester",
        "recwarn",
        "session_mocker",
        "testdir",
        # Fixtures that patch a library for the whole process.
        "aioresponses",
        "freezer",
        "fs",
        "httpx_mock",
        "requests_mock",
        "respx_mock",
        "socket_disabled",
        "socket_enabled",
        "time_machine",
        # Fixtures that write to a report in the order of their calls.
        "record_xml_attribute",
        "subtests",
        # Fixtures that move the test to another event loop.
        "anyio_backend",
    }
)
"""Fixtures of pytest and of well-known plugins that only one test at a time can use."""

PATCHING_MARKERS = (
    "allow_hosts",
    "block_network",
    "disable_socket",
    "enable_socket",
    "freeze_time",
    "httpretty",
    "respx",
    "time_machine",
    "vcr",
)
"""Markers of well-known plugins that patch the whole process for a test."""

PATCHING_PACKAGES = frozenset(
    {
        "aioresponses",
        "freezegun",
        "httpretty",
        "moto",
        "pook",
        "requests_mock",
        "respx",
        "responses",
        "time_machine",
        "vcr",
    }
)
"""Libraries whose functions patch the whole process."""

HARMLESS_PACKAGES = (
    "_hypothesis_pytestplugin",
    "_pytest",
    "allure_pytest",
    "anyio",
    "ci_agent_eval",
    "hypothesis",
    "pytest_asyncio",
    "pytest_cov",
    "pytest_html",
    "pytest_metadata",
    "pytest_randomly",
    "pytest_rerunfailures",
    "pytest_socket",
    "pytest_subtests",
    "pytest_timeout",
    "xdist",
)
"""Packages whose hooks neither skip an episode in its setup nor run it themselves."""

_DECIDING_HOOKS = ("pytest_runtest_setup", "pytest_pyfunc_call")
"""Hooks that may decide whether or how a test runs; they are called at its turn."""


OBSTACLE = pytest.StashKey[str | None]()
_USES_CHECKS = pytest.StashKey[bool]()
_HOOKS = pytest.StashKey[dict[Path, list[str]]]()


def find_obstacle(item: pytest.Item) -> str | None:
    """Return why an episode has to run alone, or None if it may run concurrently."""
    if OBSTACLE not in item.stash:
        item.stash[OBSTACLE] = (
            _check_kind(item) or _check_exclusive_use(item) or _check_skip_marks(item)
        )
    return item.stash[OBSTACLE]


def _check_kind(item: pytest.Item) -> str | None:
    if detection.EPISODE not in item.stash:
        return "it is not an episode"
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return "Hypothesis runs it"
    function = get_test_function(item)
    if type(item) is pytest.Function and function is not None and not is_async(function):
        return "it is a plain `def` test: make it `async def`, or use -n"
    is_known = type(item) is pytest.Function or is_from_pytest_asyncio(type(item).setup)
    if not is_known or not runs_coroutine(item):
        return "it is not an `async def` test of this plugin's loop"
    return None


def _check_exclusive_use(item: pytest.Item) -> str | None:
    if find_session_name(item) is not None:
        return "its session continues in the order of its tests"
    is_alone = _read_alone_marker(item)
    if is_alone is not None:
        return "its marker says alone=True" if is_alone else None
    found = sorted(EXCLUSIVE_FIXTURES.intersection(getattr(item, "fixturenames", ())))
    if found and not (found == [held_changes.FIXTURE] and held_changes.is_held(item)):
        return f"it uses the fixture {found[0]}"
    if reason := _check_decorators(item):
        return reason
    if measurement.get_soft_failure_log(item.config) is not None and _uses_soft_checks(item):
        return "pytest-check keeps one list of failures for all tests"
    hooks = list_foreign_hooks(item)
    return f"{hooks[0]} has a hook that may skip it or run it" if hooks else None


def _uses_soft_checks(item: pytest.Item) -> bool:
    """Return whether any test or module of the suite uses pytest-check."""
    stash = item.session.stash
    if _USES_CHECKS not in stash:
        root = str(item.config.rootpath)
        names = [vars(module) for module in tuple(sys.modules.values()) if _is_own(module, root)]
        values = itertools.chain.from_iterable(tuple(each.values()) for each in names)
        stash[_USES_CHECKS] = any(
            "check" in getattr(each, "fixturenames", ()) for each in item.session.items
        ) or any(_get_package(value) == "pytest_check" for value in values)
    return stash[_USES_CHECKS]


def _is_own(module: ModuleType, root: str) -> bool:
    file = str(getattr(module, "__dict__", {}).get("__file__") or "")
    return file.startswith(root) and "site-packages" not in file


def _get_package(value: object) -> str:
    """Return the package that a value is from. Asks no object: a proxy may raise."""
    is_named = issubclass(type(value), ModuleType | type | FunctionType | BuiltinFunctionType)
    named = value if is_named else type(value)
    name = getattr(named, "__module__", None) or getattr(named, "__name__", "")
    return str(name).partition(".")[0]


def _check_decorators(item: pytest.Item) -> str | None:
    if getattr(get_test_function(item), "patchings", None):
        return "`unittest.mock.patch` changes the whole process"
    if item.get_closest_marker("filterwarnings") is not None:
        return "it has a warnings filter of its own"
    for option in ("disable_socket", "allow_hosts", "block_network"):
        if item.config.getoption(option, None):
            return f"--{option.replace('_', '-')} is set for each test anew"
    for name in PATCHING_MARKERS:
        if item.get_closest_marker(name) is not None:
            return f"its marker {name} changes the whole process"
    functions = [getattr(item, "obj", None), *_list_fixture_functions(item)]
    used = sorted(set(itertools.chain.from_iterable(map(_find_patching_packages, functions))))
    return f"{used[0]} changes the whole process" if used else None


def _list_fixture_functions(item: pytest.Item) -> Iterator[object]:
    info = getattr(item, "_fixtureinfo", None)
    for definitions in () if info is None else info.name2fixturedefs.values():
        yield from (definition.func for definition in definitions[-1:])


def _find_patching_packages(function: object) -> Iterator[str]:
    """Yield the patching packages that decorate a function, or whose functions it calls."""
    while function is not None:
        wrapper = getattr(function, "_self_wrapper", None)  # of wrapt
        names = getattr(function, "__globals__", {})
        code = getattr(function, "__code__", None)
        values = [
            wrapper,
            *(names[name] for name in getattr(code, "co_names", ()) if name in names),
        ]
        packages = [str(names.get("__name__", "")).partition(".")[0], *map(_get_package, values)]
        yield from (package for package in packages if package in PATCHING_PACKAGES)
        function = getattr(function, "__wrapped__", None)


def _read_alone_marker(item: pytest.Item) -> bool | None:
    """Return the argument of the closest marker that has it."""
    for mark in item.iter_markers(detection.NAME):
        if mark.kwargs.get(ALONE_ARGUMENT) is not None:
            return bool(mark.kwargs[ALONE_ARGUMENT])
    return None


def _check_skip_marks(item: pytest.Item) -> str | None:
    """Return why a skipped test, or one that is not run, must not be started ahead."""
    marks = [item.get_closest_marker(name) for name in ("skip", "skipif", "xfail")]
    if not any(marks):
        return None
    try:
        skipped = skipping.evaluate_skip_marks(item)
        expected = skipping.evaluate_xfail_marks(item)
    except BaseException:  # noqa: BLE001 - the condition's error is raised at its turn
        return "its condition cannot be evaluated"
    runs = expected is None or expected.run or item.config.option.runxfail
    return None if skipped is None and runs else "it is not to be run"


def list_foreign_hooks(item: pytest.Item) -> list[str]:
    """Return the names of plugins and conftests whose hooks may decide about the item's run."""
    cache = item.session.stash.setdefault(_HOOKS, {})
    folder = item.path.parent  # hooks differ only by conftest.py, so by folder
    if folder not in cache:
        cache[folder] = sorted(
            {
                name
                for hook in _DECIDING_HOOKS
                for implementation in getattr(item.ihook, hook).get_hookimpls()
                if not _is_harmless(name := detection.get_plugin_name(implementation.plugin))
            }
        )
    return cache[folder]


def _is_harmless(name: str) -> bool:
    return name.partition(".")[0] in HARMLESS_PACKAGES


def build_alone_notes(items: Iterable[pytest.Item], limit: int = 3) -> list[str]:
    """Return one sentence on the episodes that have to run alone, by reason."""
    reasons: dict[str, int] = {}
    for item in items:
        if reason := find_obstacle(item):
            reasons[reason] = reasons.get(reason, 0) + 1
    if not reasons:
        return []
    ordered = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    text = "; ".join(f"{count}: {reason}" for reason, count in ordered[:limit])
    rest = f"; and {len(ordered) - limit} other reasons" if len(ordered) > limit else ""
    return [f"{sum(reasons.values())} of the episodes run alone ({text}{rest})"]


class ItemOrder:
    """The order of the items after the current one."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._at = -1
        self._next: pytest.Item | None = None
        self._worker = _find_worker(session.config)

    def set_current(self, item: pytest.Item, following: pytest.Item | None) -> None:
        """Set the current item; an item may occur more than once."""
        self._next = following
        items: Sequence[pytest.Item] = self._session.items
        if self._worker is None:
            after = self._at + 1
            self._at = after if items[after : after + 1] == [item] else items.index(item)

    def iter_upcoming(self, skipped: int) -> Iterator[pytest.Item]:
        """Yield the next items except the first `skipped`, as far as they are known."""
        items: Sequence[pytest.Item] = self._session.items
        if self._worker is None:
            for at in range(self._at + 1 + skipped, len(items)):
                yield items[at]
            return
        if self._next is None:
            return
        if skipped == 0:
            yield self._next
        for index in _list_queued(self._worker)[max(skipped - 1, 0) :]:
            yield items[index]


def _find_worker(config: pytest.Config) -> Any:
    """Return xdist's object that runs the tests of this worker, or None outside of workers."""
    if not hasattr(config, "workerinput"):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "torun")), None)


def _list_queued(worker: Any) -> list[int]:
    """Return the indices of the items in the worker's queue.

    Empty if idle workers steal items: then no waiting item is sure to run here.
    """
    if worker.config.getoption("dist", "load") == "worksteal":
        return []
    queue = worker.torun
    # The first is xdist's name for it from 3.6 on.
    waiting: Any = queue._items if hasattr(queue, "_items") else queue.queue  # noqa: SLF001 - xdist's public API names only one item ahead
    return [index for index in tuple(waiting) if isinstance(index, int)]
