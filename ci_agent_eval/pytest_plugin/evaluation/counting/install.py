"""Installation of assert counting in modules that are already imported.

Episodes are known once they are collected, and then their modules are already imported. So the
functions of such a module get code compiled from the same source with counting added; modules of
other tests are unchanged and cost nothing. `docs/decisions/0032-evidence.md` explains why.
"""

from __future__ import annotations

import ast
import gc
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation.counting.count_transform import COUNTER, count_asserts
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import matches_any_pattern
from ci_agent_eval.pytest_plugin.options import ASSERT_MODULES
from ci_agent_eval.recording.active_episode import note_passed_assert

_EXPECTING_TYPES = (
    type(pytest.raises(Exception)),  # noqa: PT011 - only its type is wanted
    type(pytest.warns(Warning)),  # noqa: PT030 - as above
)

_REWRITTEN = "@pytest_ar"
"""pytest's name for its assertion module, in a module whose asserts it has rewritten."""


class AssertCounter:
    """The global that counting code calls in a module."""

    @staticmethod
    def count_assert() -> None:
        """Count an assert, or an expected exception."""
        note_passed_assert()

    @staticmethod
    def count_call(value: Any) -> Any:
        """Count the call of an assertion function that returned; pass its value on.

        A coroutine or a generator has not run yet and does not count.
        """
        if not (inspect.isawaitable(value) or inspect.isgenerator(value)):
            note_passed_assert()
        return value

    @staticmethod
    def count_manager(manager: object) -> None:
        """Count a `with` statement whose manager expects an exception or a warning."""
        if isinstance(manager, _EXPECTING_TYPES):
            note_passed_assert()


class AssertCounting:
    """Counts the asserts of given modules; one object per process."""

    def __init__(self, config: pytest.Config, repo: RepositoryPaths) -> None:
        self._config = config
        self._repo = repo
        self._helpers: tuple[str, ...] = tuple(config.getini(ASSERT_MODULES))
        self._counted: set[str] = set()
        self._functions: dict[str, list[weakref.ref[types.FunctionType]]] = {}
        self._modules = 0

    def count_for(self, item: pytest.Item) -> str | None:
        """Count the asserts that the item's test may run, from now on.

        Returns the problem with the setting that names helper modules, or None.
        """
        problem = None if self._modules else _import_modules(self._helpers)
        files = set(_list_files(item))
        if self._modules != len(sys.modules):
            files |= set(self._list_helper_files())
            self._modules = len(sys.modules)
        self._count(files - self._counted)
        return problem

    def _count(self, files: set[str]) -> None:
        if files - self._functions.keys():
            self._functions = group_functions_by_file()
        for file in sorted(files):
            self._count_in(file)
        self._counted |= files

    def _count_in(self, file: str) -> None:
        references = (reference() for reference in self._functions.get(file, ()))
        found = [function for function in references if function is not None]
        if not found:
            return
        try:
            codes = compile_counting_code(file, self._config, rewritten=is_rewritten(found[0]))
        except (OSError, SyntaxError):
            return  # it has no source, or the source has changed
        replace_codes(found, codes, AssertCounter)

    def _list_helper_files(self) -> Iterator[str]:
        """Yield the files of modules that assert for tests.

        These are the modules of the setting with their submodules, conftest.py files, and other
        modules of the repository whose asserts pytest rewrites, except tests.
        """
        prefixes = tuple(f"{name}." for name in self._helpers)
        for name, module in list(sys.modules.items()):
            values = getattr(module, "__dict__", {})
            file = values.get("__file__")
            if file and (f"{name}.".startswith(prefixes) or self._is_helper(file, values)):
                yield file

    def _is_helper(self, file: str, values: Mapping[str, object]) -> bool:
        if _REWRITTEN not in values and not file.endswith("conftest.py"):
            return False  # most modules, without a path object for each
        path = Path(file)
        if path.name != "conftest.py" and _REWRITTEN not in values:
            return False
        is_test = matches_any_pattern(path, self._config.getini("python_files"))
        return not is_test and self._repo.relative(file) is not None


def compile_counting_code(
    file: str,
    config: pytest.Config,
    *,
    rewritten: bool,
    transform: Callable[[ast.Module], None] | None = None,
) -> Mapping[types.CodeType, types.CodeType]:
    """Return counting code for the code of each function of a file.

    `transform` changes the syntax tree so that the code counts; by default it counts asserts.
    Code that another tool has changed, so that it differs from the source, is not in the result.
    Raises OSError or SyntaxError if there is no source, or it has changed.
    """
    # Asserts that the interpreter removes (`-O`) must not be counted.
    transform = transform or partial(count_asserts, asserts=rewritten or __debug__)
    plain = _compile_file(file, config, rewritten=rewritten)
    counting = _compile_file(file, config, rewritten=rewritten, transform=transform)
    return dict(zip(_iter_codes(plain), _iter_codes(counting), strict=True))


def replace_codes(
    functions: Iterable[types.FunctionType],
    codes: Mapping[types.CodeType, types.CodeType],
    counter: object,
) -> None:
    """Make functions run their counting code, which finds `counter` among its globals."""
    for function in functions:
        if (code := codes.get(function.__code__)) is not None:
            function.__globals__[COUNTER] = counter
            function.__code__ = code


def _compile_file(
    file: str,
    config: pytest.Config,
    *,
    rewritten: bool,
    transform: Callable[[ast.Module], None] | None = None,
) -> types.CodeType:
    source = Path(file).read_bytes()
    tree = ast.parse(source, filename=file)
    if transform is not None:
        transform(tree)
    if rewritten:
        rewrite_asserts(tree, source, file, config)
    code: types.CodeType = compile(tree, file, "exec", dont_inherit=True)
    return code


def _iter_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _iter_codes(constant)


def is_rewritten(function: types.FunctionType) -> bool:
    """Return whether pytest has rewritten the asserts of the function's module."""
    return _REWRITTEN in function.__globals__


def list_functions(module: types.ModuleType) -> list[types.FunctionType]:
    """Return the functions of a module, and of its classes, in the order of their definition."""
    values = [
        value
        for value in vars(module).values()
        if getattr(value, "__module__", None) == module.__name__
    ]
    classes = [value for value in values if isinstance(value, type)]
    methods = [value for each in classes for value in vars(each).values()]
    return [value for value in (*values, *methods) if isinstance(value, types.FunctionType)]


def group_functions_by_file() -> dict[str, list[weakref.ref[types.FunctionType]]]:
    """Return all existing functions by file, including decorated ones and closures."""
    found: dict[str, list[weakref.ref[types.FunctionType]]] = {}
    for value in gc.get_objects():
        if type(value) is types.FunctionType:
            found.setdefault(value.__code__.co_filename, []).append(weakref.ref(value))
    return found


def are_asserts_counted(item: pytest.Item) -> bool:
    """Return whether the asserts of the item's own function are counted."""
    function = _get_function(item)
    return function is None or COUNTER in function.__globals__


def _list_files(item: pytest.Item) -> Iterator[str]:
    """Yield the files of a test: the collected one, and the file of its function."""
    yield str(item.path)
    if (function := _get_function(item)) is not None:
        yield function.__code__.co_filename


def _get_function(item: pytest.Item) -> types.FunctionType | None:
    found = inspect.unwrap(getattr(item, "obj", None))  # type: ignore[arg-type]  # None is fine
    found = getattr(found, "__func__", found)
    return found if isinstance(found, types.FunctionType) else None


def _import_modules(names: Iterable[str]) -> str | None:
    """Import modules; return the problem of the first that cannot be imported, or None."""
    for name in names:
        try:
            import_module(name)
        except Exception as error:  # noqa: BLE001 - a module may raise anything
            problem = f"{type(error).__name__}: {error}"
            return f"ini setting {ASSERT_MODULES}: {name!r} cannot be imported ({problem})"
    return None
