"""Loader of the settings: flags override the environment, which overrides a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.steering.locations import CONFIG_NAME
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.model import BareDirectory, Rules
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.runners import RUNNER_NAMES, load_runners

ENABLED_VARIABLE = "PYTEST_FULL_SUITE_STEERING_ENABLED"
MESSAGE_VARIABLE = "PYTEST_FULL_SUITE_STEERING_MESSAGE"
SECTION = "session"
NESTED = "tool_call_reactor"
"""A table in `session`; each key may be in either of the two."""
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


def load_steering_settings(
    *,
    root: Path,
    environ: Mapping[str, str],
    enabled: bool | None = None,
    config: Path | None = None,
) -> SteeringSettings:
    """Merge the settings: the flag `enabled` overrides `environ`, which overrides the file.

    The file is `config`, or by default the optional `agent-eval-steering.yaml` in `root`. Raises
    InputError with the file and line.
    """
    settings = _apply_environment(_load_file(root, config), environ)
    return settings if enabled is None else replace(settings, enabled=enabled)


def _load_file(root: Path, config: Path | None) -> SteeringSettings:
    path = root / CONFIG_NAME if config is None else config
    name = CONFIG_NAME if config is None else str(config)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if config is None:
            return SteeringSettings()
        raise InputError(f"{name}: there is no such file; check --config") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); check --config") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    return parse_steering_settings(text, name)


def _apply_environment(settings: SteeringSettings, environ: Mapping[str, str]) -> SteeringSettings:
    enabled, message = (environ.get(name, "") for name in (ENABLED_VARIABLE, MESSAGE_VARIABLE))
    if word := enabled.strip().lower():
        if word not in _TRUE | _FALSE:
            raise InputError(
                f"environment variable {ENABLED_VARIABLE}: must be true or false "
                f"(given: {enabled!r})"
            )
        settings = replace(settings, enabled=word in _TRUE)
    return replace(settings, message=message.strip()) if message.strip() else settings


def parse_steering_settings(text: str, name: str) -> SteeringSettings:
    """Parse settings in YAML; `name` is the file's name in errors. Raises InputError."""
    try:
        # Slow to import, and a hook without a file does not need it.
        from ci_agent_eval.contract.located_yaml import parse_located_yaml  # noqa: PLC0415 - as said
    except ModuleNotFoundError as error:  # pragma: no cover - the tests' environment has it
        user = "a configuration file of steering"
        raise missing_package_error(user, "PyYAML", "steering") from error
    try:
        return _build_settings(_read_document(parse_located_yaml(text) or LocatedValue({}, 1)))
    except LocatedProblem as error:
        raise InputError(f"{name}:{error.line}: {error}") from None


def _build_settings(values: Mapping[str, Any]) -> SteeringSettings:
    """Build the settings from the values in a file, by their keys."""
    is_bare_full = values.get("pytest_full_suite_bare_directory", False)
    rules = Rules(
        bare_directory=values.get("bare_directory", "full" if is_bare_full else "targeted"),
        aliases=tuple(values.get("pytest_full_suite_aliases", ())),
        runners=load_runners(dict.fromkeys(values.get("runners", ()))),
        shell_tools={
            tool: _list_names(keys) for tool, keys in values.get("shell_tools", {}).items()
        },
    )
    dangerous = tuple(values.get("dangerous_commands", ()))
    if "dangerous_commands_enabled" in values:
        is_on = values["dangerous_commands_enabled"]
        dangerous = (dangerous or tuple(DANGEROUS_SETS)) if is_on else ()
    fields = {field: values[key] for key, field in _FIELDS.items() if key in values}
    general = tuple(values.get("steering_rules", ()))
    return SteeringSettings(rules=rules, dangerous=dangerous, general=general, **fields)


def _list_names(keys: Any) -> tuple[str, ...]:
    return (keys,) if isinstance(keys, str) else tuple(keys or ())


# Reading of values


class _Kind(NamedTuple):
    """A kind of values: what they must be, in words and as a check of the plain value."""

    requirement: str
    is_valid: Callable[[Any], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list(value: object, is_valid: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_valid, value))


def _is_number(value: object, lowest: float, limit: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and lowest < value < limit  # type: ignore[operator] # mypy loses the narrowing


def _is_pattern(value: object) -> bool:
    try:
        return _is_text(value) and bool(re.compile(str(value)))
    except (re.error, RecursionError, OverflowError):
        return False


def _is_shell_tools(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(tool) and (keys is None or _is_text(keys) or _is_list(keys, _is_text))
        for tool, keys in value.items()
    )


def _build_choice(names: Collection[str]) -> _Kind:
    requirement = f"a list of names from {', '.join(names)}"
    return _Kind(requirement, lambda value: _is_list(value, lambda name: name in names))


_LIMIT = 10**6
_BOOL = _Kind("true or false", lambda value: isinstance(value, bool))
_TEXT = _Kind("a text that is not empty", _is_text)
_TEXTS = _Kind("a list of texts", lambda value: _is_list(value, _is_text))
_PRIORITY = _Kind(
    f"a whole number from {-_LIMIT} to {_LIMIT}",
    lambda value: isinstance(value, int) and _is_number(value, -_LIMIT - 1, _LIMIT + 1),
)
# At most ten years; smaller integers are exact as floats.
_SECONDS = _Kind("a number of seconds above 0", lambda value: _is_number(value, 0, 315e6))
_MAPPING = _Kind("a mapping of keys to values", lambda value: isinstance(value, dict))
_BARE_DIRECTORY = _Kind(" or ".join(get_args(BareDirectory)), get_args(BareDirectory).__contains__)
_SHELL_TOOLS = _Kind("a mapping of tools to names of their arguments", _is_shell_tools)

KEYS: Mapping[str, _Kind] = {
    "pytest_full_suite_steering_enabled": _BOOL,
    "pytest_full_suite_steering_message": _TEXT,
    "pytest_full_suite_handler_priority": _PRIORITY,
    "session_state_ttl": _SECONDS,
    "pytest_full_suite_bare_directory": _BOOL,
    "bare_directory": _BARE_DIRECTORY,
    "pytest_full_suite_aliases": _TEXTS,
    "runners": _build_choice(RUNNER_NAMES),
    "shell_tools": _SHELL_TOOLS,
    "dangerous_commands": _build_choice(DANGEROUS_SETS),
    "dangerous_commands_enabled": _BOOL,
    "steering_rules": _Kind("a list of rules", lambda value: isinstance(value, list)),
}
"""The keys of `session:`."""
_FIELDS = {
    "pytest_full_suite_steering_enabled": "enabled",
    "pytest_full_suite_steering_message": "message",
    "pytest_full_suite_handler_priority": "priority",
    "session_state_ttl": "ttl",
}
"""The fields of `SteeringSettings` that have the value of a key."""
_RULE_KEYS: Mapping[str, _Kind] = {
    "name": _TEXT,
    "pattern": _Kind("a regular expression", _is_pattern),
    "message": _TEXT,
    "tools": _TEXTS,
    "priority": _PRIORITY,
    "once": _BOOL,
}


def _read_document(document: LocatedValue) -> dict[str, Any]:
    """Return the values by their keys, of both tables. Raises LocatedProblem."""
    root = _read_mapping(document, "the file")
    if SECTION not in root:
        _refuse_misspelled_section(root)
    session = _read_mapping(root[SECTION], SECTION) if SECTION in root else {}
    _refuse_unknown(session, (*KEYS, NESTED), f"{SECTION}.")
    place = f"{SECTION}.{NESTED}"
    nested = _read_mapping(session[NESTED], place) if NESTED in session else {}
    _refuse_unknown(nested, tuple(KEYS), f"{place}.")
    for name in session.keys() & nested.keys():
        if session[name].to_plain() != nested[name].to_plain():
            problem = f"{name}: differs from line {session[name].line}; keep one"
            raise LocatedProblem(nested[name].line, problem)
    tables = {name: each for name, each in {**session, **nested}.items() if name != NESTED}
    values = {name: _read_value(each, name, KEYS[name]) for name, each in tables.items()}
    if "steering_rules" in tables:
        values["steering_rules"] = _read_rules(tables["steering_rules"])
    return values


def _read_value(located: LocatedValue, name: str, kind: _Kind) -> Any:
    """Return a valid plain value. Raises LocatedProblem for another one."""
    value = located.to_plain()
    if kind.is_valid(value):
        return value.strip() if isinstance(value, str) else value
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    raise LocatedProblem(located.line, f"{name}: must be {kind.requirement} (given: {shown})")


def _read_mapping(located: LocatedValue, name: str) -> dict[str, LocatedValue]:
    if located.value is None:
        return {}
    _read_value(located, name, _MAPPING)
    return dict(located.value)


def _read_rules(located: LocatedValue) -> list[GeneralRule]:
    rules = [_read_rule(item, f"steering_rules[{at}]") for at, item in enumerate(located.value)]
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            problem = f"steering_rules: two rules are called {name!r}; rename one"
            raise LocatedProblem(located.line, problem)
    return rules


def _read_rule(located: LocatedValue, place: str) -> GeneralRule:
    fields = _read_mapping(located, place)
    _refuse_unknown(fields, tuple(_RULE_KEYS), f"{place}.")
    for required in ("name", "pattern", "message"):
        if required not in fields:
            raise LocatedProblem(located.line, f"{place}.{required}: is required")
    values = {
        key: _read_value(field, f"{place}.{key}", _RULE_KEYS[key]) for key, field in fields.items()
    }
    return GeneralRule(**{**values, "tools": tuple(values.get("tools", ()))})


# Misspelled keys


def _refuse_misspelled_section(root: Mapping[str, LocatedValue]) -> None:
    """Refuse a similar name with our keys; others belong to programs that share the file."""
    for key, located in root.items():
        is_ours = isinstance(located.value, dict) and {*KEYS, NESTED} & located.value.keys()
        if is_ours and _find_nearest(SECTION, [key], 0.8):
            raise LocatedProblem(located.line, f"unknown key {key!r}; did you mean {SECTION!r}?")


def _refuse_unknown(table: Mapping[str, LocatedValue], names: Collection[str], prefix: str) -> None:
    for key, located in table.items():
        if key not in names:
            nearest = _find_nearest(key, names)
            hint = f"did you mean {nearest!r}?" if nearest else f"known keys: {', '.join(names)}"
            raise LocatedProblem(located.line, f"unknown key {prefix + key!r}; {hint}")


def _find_nearest(name: str, names: Collection[str], cutoff: float = 0.6) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    return next(iter(get_close_matches(name, list(names), n=1, cutoff=cutoff)), None)
