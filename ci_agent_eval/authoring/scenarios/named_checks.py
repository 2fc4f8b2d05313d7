"""Checks by name: of this package, of installed packages, and any class or function of a module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import ci_agent_eval.checks as own_checks
from ci_agent_eval.checks import Check, ScoringDimension, as_check
from ci_agent_eval.config.entry_points import (
    CHECKS,
    EXTENSION_ERRORS,
    list_extensions,
    load_extension,
)
from ci_agent_eval.contract.base import describe_unknown_key
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.errors import InputError

_NO_CHECKS = {"Check", "ScoringDimension", "as_check", "from_evaluator"}
NAMES = tuple(name for name in own_checks.__all__ if name not in _NO_CHECKS)
"""The checks of `ci_agent_eval.checks`."""


def build_check(given: object) -> Check:
    """Build a check from its name, or its name with arguments. Raises InputError.

    Arguments are a table of keywords; a single other value is the first argument. A name
    `module:Name` is imported.
    """
    name, arguments = _split_check(given)
    factory = _import_factory(name) if ":" in name else _find_factory(name)
    try:
        built = _call_factory(factory, arguments)
    except InputError:
        raise
    except EXTENSION_ERRORS as error:
        raise InputError(f"{name}: cannot be built ({describe_error(error)})") from None
    check = as_check(built)
    if check is None:
        raise InputError(f"{name}: made a {type(built).__name__}, which is no Check or evaluator")
    return check


def _split_check(given: object) -> tuple[str, Any]:
    if isinstance(given, str):
        return given, {}
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InputError("must be a check's name, or one name with its arguments")
    ((name, arguments),) = given.items()
    return str(name), {} if arguments is None else arguments


def _find_factory(name: str) -> Any:
    if name in NAMES:
        return getattr(own_checks, name)
    extension = load_extension(CHECKS, name)
    if extension is None:
        known = (*NAMES, *list_extensions(CHECKS))
        raise InputError(f"{describe_unknown_key(name, known)}; write your own as `module:Name`")
    return extension.value


def _import_factory(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except EXTENSION_ERRORS as error:
        raise InputError(f"{name}: cannot be imported ({describe_error(error)})") from None


def _call_factory(factory: Any, arguments: Any) -> object:
    if not isinstance(arguments, Mapping):
        return factory(arguments)
    keywords = dict(arguments)
    if factory is own_checks.DimensionRubric and isinstance(keywords.get("dimensions"), list):
        keywords["dimensions"] = [ScoringDimension(**one) for one in keywords["dimensions"]]
    return factory(**keywords)
