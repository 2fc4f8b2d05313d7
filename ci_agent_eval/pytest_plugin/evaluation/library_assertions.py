"""Assertions without an `assert` statement: functions of libraries, wrapped to report each success.

A library is wrapped when it is imported; nothing is imported for it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.evaluation.rewritten_asserts import get_listener

Wrapper = Callable[[Any], Any]

_NO_CHECKS = {"check_func", "fail"}
"""Functions of pytest-check that check nothing."""


def install(config: pytest.Config) -> None:
    """Wrap the assertions of pytest, and of each library once it is imported."""
    libraries = LibraryAssertions()
    libraries.wrap_pytest()
    for name in _LIBRARIES:
        if name in sys.modules:
            libraries.wrap(sys.modules[name])
    sys.meta_path.insert(0, libraries)
    config.add_cleanup(libraries.restore)


class LibraryAssertions(MetaPathFinder):
    """Wraps libraries after their import, and restores them."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def wrap_pytest(self) -> None:
        """Wrap the managers of `pytest.raises`, `pytest.warns` and their like."""
        self._replace_exits(_list_pytest_managers())
        if not hasattr(pytest, "RaisesExc"):  # before pytest 8.4 a call uses no manager
            self._replace(pytest, ["raises"], _wrap_raises)

    def wrap(self, module: ModuleType) -> None:
        """Wrap a library's assertions."""
        _LIBRARIES[module.__name__](self, module)

    def wrap_unittest(self, module: Any) -> None:
        """Wrap the methods of TestCase, and the managers that some of them return."""
        case = module.TestCase
        self._replace(case, _list_assertions(vars(case)), _wrap_function)
        self._replace_exits(_list_unittest_managers(module))

    def wrap_mocks(self, module: Any) -> None:
        """Wrap the methods of mocks."""
        for kind in {owner for mock in (module.Mock, module.AsyncMock) for owner in mock.__mro__}:
            self._replace(kind, _list_assertions(vars(kind)), _wrap_function)

    def wrap_functions(self, module: Any) -> None:
        """Wrap the functions of a module."""
        self._replace(module, _list_assertions(vars(module)), _wrap_function)

    def wrap_checks(self, module: Any) -> None:
        """Wrap the soft checks of pytest-check, under each of their names."""
        functions = module.check_functions
        checks = [name for name in functions.__all__ if name not in _NO_CHECKS]
        for owner in (functions, module, module.check):
            self._replace(owner, checks, _wrap_check)
        raising = type(module.raises(Exception))
        self._replace(raising, ["__exit__"], _wrap_check_exit)

    def restore(self) -> None:
        """Restore all functions."""
        sys.meta_path.remove(self)
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find a library, to wrap it after its import."""
        if fullname not in _LIBRARIES:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((found for found in specs if found is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _WrappingLoader(spec.loader, self)
        return spec

    def _replace_exits(self, managers: Iterable[type]) -> None:
        for manager in managers:
            self._replace(manager, ["__exit__"], _wrap_exit)

    def _replace(self, owner: Any, names: Iterable[str], wrap: Wrapper) -> None:
        for name in names:
            original = getattr(owner, name)
            self._originals.append((owner, name, original))
            setattr(owner, name, wrap(original))


_LIBRARIES: dict[str, Callable[[LibraryAssertions, Any], None]] = {
    "unittest.case": LibraryAssertions.wrap_unittest,
    "unittest.mock": LibraryAssertions.wrap_mocks,
    "numpy.testing": LibraryAssertions.wrap_functions,
    "pytest_check": LibraryAssertions.wrap_checks,
}


class _WrappingLoader(Loader):
    """Loads a module as its own loader does, then wraps it; leaves no trace in the module."""

    def __init__(self, loader: Loader, libraries: LibraryAssertions) -> None:
        self._loader = loader
        self._libraries = libraries

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._libraries.wrap(module)


def list_expecting_types() -> tuple[type, ...]:
    """Return the types of managers that expect an exception, a warning or a log record."""
    case = sys.modules.get("unittest.case")
    return (*_list_pytest_managers(), *(() if case is None else _list_unittest_managers(case)))


@functools.cache
def _list_pytest_managers() -> tuple[type, ...]:
    """Return pytest's types; not every pytest has names for them."""
    found = type(pytest.raises(Exception)), type(pytest.warns(Warning))  # noqa: PT011, PT030 - only their types are wanted
    group = getattr(pytest, "RaisesGroup", None)
    return found if group is None else (*found, group)


@functools.cache
def _list_unittest_managers(module: Any) -> tuple[type, ...]:
    """Return the types of unittest, which have no public names."""
    case = module.TestCase()
    found = case.assertRaises(Exception), case.assertWarns(Warning), case.assertLogs()  # noqa: PT027 - only its type is wanted
    return tuple(map(type, found))


def get_expected_exceptions(manager: Any) -> Any:
    """Return the exception types that a manager of `list_expecting_types` catches, or ()."""
    # pytest 8.4 renamed the attribute and allows several exceptions.
    names = "expected_exceptions", "expected_exception"
    if isinstance(manager, _list_pytest_managers()):
        return next((getattr(manager, name) for name in names if hasattr(manager, name)), ())
    raising, *_ = _list_unittest_managers(sys.modules["unittest.case"])
    return getattr(manager, "expected", ()) if isinstance(manager, raising) else ()


def _list_assertions(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("assert")]


def _note_call(value: object = True) -> None:
    __tracebackhide__ = True
    if (listener := get_listener()) is not None:
        listener.note_call(value)


def _wrap_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report each call that returned None; a manager or a coroutine has asserted nothing yet."""

    @functools.wraps(original)
    def assertion(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        result = original(*arguments, **options)
        if result is None:
            is_of_truth = original.__name__ == "assertTrue"
            _note_call(options.get("expr", (*arguments, True)[1]) if is_of_truth else True)
        return result

    return assertion


def _wrap_raises(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report `pytest.raises(ValueError, function)`, which calls the function."""

    @functools.wraps(original)
    def raises(expected: Any, *arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        result = original(expected, *arguments, **options)
        if arguments:
            _note_call()
        return result

    return raises


def _wrap_exit(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report a manager that ended as expected."""

    @functools.wraps(original)
    def leave(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        __tracebackhide__ = True
        handled = original(self, kind, error, traceback)
        if handled or kind is None:
            _note_call()
        return handled

    return leave


def _wrap_check(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report each check that passed."""

    @functools.wraps(original)
    def check(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        passed = original(*arguments, **options)
        if passed is True and (listener := get_listener()) is not None:
            listener.note_check(sys._getframe(1))  # noqa: SLF001 - documented
        return passed

    return check


def _wrap_check_exit(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report a `check.raises` that ended as expected."""

    @functools.wraps(original)
    def leave(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        __tracebackhide__ = True
        handled = original(self, kind, error, traceback)
        is_expected = kind is not None and issubclass(kind, self.expected_excs)
        if is_expected and (listener := get_listener()) is not None:
            listener.note_check(sys._getframe(1))  # noqa: SLF001 - documented
        return handled

    return leave
