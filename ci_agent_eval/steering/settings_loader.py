"""Loader of the settings: flags override the environment, which overrides a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.steering.locations import CONFIG_NAME
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.model import BareDirectory, RunnerProgram
from ci_agent_eval.steering.policy.settings import GENERAL_PRIORITY, GeneralRule, SteeringSettings
from ci_agent_eval.steering.runners import RUNNER_NAMES, find_runners, load_runners

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
        return _parse_document(parse_located_yaml(text) or LocatedValue({}, 1))
    except LocatedProblem as error:
        raise InputError(f"{name}:{error.line}: {error}") from None


def _parse_document(document: LocatedValue) -> SteeringSettings:
    root = _read_mapping(document, "the file")
    if SECTION not in root:
        _refuse_misspelled_section(root)
    session = _read_mapping(root[SECTION], SECTION) if SECTION in root else {}
    _refuse_unknown(session, (*KEYS, NESTED), f"{SECTION}.")
    nested = _read_mapping(session[NESTED], f"{SECTION}.{NESTED}") if NESTED in session else {}
    _refuse_unknown(nested, tuple(KEYS), f"{SECTION}.{NESTED}.")
    settings = SteeringSettings()
    for name, located in _merge_tables(session, nested):
        settings = KEYS[name](settings, located, name)
    return settings


def _refuse_misspelled_section(root: Mapping[str, LocatedValue]) -> None:
    """Refuse a similar name with our keys; others belong to programs that share the file."""
    for key, located in root.items():
        is_ours = isinstance(located.value, dict) and {*KEYS, NESTED} & located.value.keys()
        if is_ours and _find_nearest(SECTION, [key], 0.8):
            raise LocatedProblem(located.line, f"unknown key {key!r}; did you mean {SECTION!r}?")


def _merge_tables(
    session: Mapping[str, LocatedValue], nested: Mapping[str, LocatedValue]
) -> Iterator[tuple[str, LocatedValue]]:
    for name in KEYS:
        values = [table[name] for table in (session, nested) if name in table]
        if len(values) == 2 and values[0].to_plain() != values[1].to_plain():
            raise LocatedProblem(
                values[1].line, f"{name}: differs from line {values[0].line}; keep one"
            )
        if values:
            yield name, values[0]


def _refuse_unknown(table: Mapping[str, LocatedValue], known: tuple[str, ...], prefix: str) -> None:
    for key, located in table.items():
        if key not in known:
            hint = _suggest(key, known, "known keys")
            raise LocatedProblem(located.line, f"unknown key {prefix + key!r}; {hint}")


def _find_nearest(name: str, names: Sequence[str], cutoff: float = 0.6) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    return next(iter(get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def _suggest(name: str, known: Sequence[str], label: str = "known") -> str:
    nearest = _find_nearest(name, known)
    return f"did you mean {nearest!r}?" if nearest else f"{label}: {', '.join(known)}"


# Readers of values, each of which gets a value and its key's name


def _check(located: LocatedValue, name: str, requirement: str, *, is_valid: bool) -> Any:
    """Return a valid value. Raises LocatedProblem for another one."""
    if is_valid:
        return located.value
    shown = repr(located.to_plain())
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    raise LocatedProblem(located.line, f"{name}: must be {requirement} (given: {shown})")


def _read_mapping(located: LocatedValue, name: str) -> dict[str, LocatedValue]:
    is_valid = located.value is None or isinstance(located.value, dict)
    requirement = "a mapping of keys to values"
    fields: dict[str, LocatedValue] | None = _check(located, name, requirement, is_valid=is_valid)
    return fields or {}


def _read_bool(located: LocatedValue, name: str) -> bool:
    is_valid = isinstance(located.value, bool)
    return bool(_check(located, name, "true or false", is_valid=is_valid))


def _read_bare_switch(located: LocatedValue, name: str) -> BareDirectory:
    return "full" if _read_bool(located, name) else "targeted"


def _read_bare_directory(located: LocatedValue, name: str) -> Any:
    choices = get_args(BareDirectory)
    return _check(located, name, " or ".join(choices), is_valid=located.value in choices)


def _read_text(located: LocatedValue, name: str) -> str:
    is_valid = isinstance(located.value, str) and bool(located.value.strip())
    return str(_check(located, name, "a text that is not empty", is_valid=is_valid)).strip()


def _read_integer(located: LocatedValue, name: str) -> int:
    value, limit = located.value, 10**6
    is_valid = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= limit
    return int(_check(located, name, f"a whole number from {-limit} to {limit}", is_valid=is_valid))


def _read_seconds(located: LocatedValue, name: str) -> float:
    value: Any = located.value
    # At most ten years; smaller integers are exact as floats.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_valid = is_number and 0 < value < 315e6
    return float(_check(located, name, "a number of seconds above 0", is_valid=is_valid))


def _read_list(located: LocatedValue, name: str, items: str) -> tuple[LocatedValue, ...]:
    is_valid = isinstance(located.value, tuple)
    return tuple(_check(located, name, f"a list of {items}", is_valid=is_valid))


def _read_texts(located: LocatedValue, name: str) -> tuple[str, ...]:
    return tuple(_read_text(item, name) for item in _read_list(located, name, "texts"))


def _read_dangerous_sets(located: LocatedValue, name: str) -> tuple[str, ...]:
    names = _read_texts(located, name)
    for each in names:
        if each not in DANGEROUS_SETS:
            choices = ", ".join(DANGEROUS_SETS)
            raise LocatedProblem(located.line, f"{name}: unknown {each!r}; known: {choices}")
    return names


def _read_runners(located: LocatedValue, name: str) -> tuple[RunnerProgram, ...]:
    names = _read_texts(located, name)
    for each in names:
        if each not in RUNNER_NAMES:
            hint = _suggest(each, RUNNER_NAMES)
            raise LocatedProblem(located.line, f"{name}: unknown {each!r}; {hint}")
    return load_runners(dict.fromkeys(names))


def _read_shell_tools(located: LocatedValue, name: str) -> dict[str, tuple[str, ...]]:
    """Read names of tools with one or several names of arguments."""
    tools = _read_mapping(located, name)
    requirement = "a mapping of tools, none of them an empty text"
    _check(located, name, requirement, is_valid=all(tool.strip() for tool in tools))
    return {tool: _read_argument_names(keys, f"{name}.{tool}") for tool, keys in tools.items()}


def _read_argument_names(located: LocatedValue, name: str) -> tuple[str, ...]:
    if located.value is None:
        return ()
    is_text = isinstance(located.value, str)
    return (_read_text(located, name),) if is_text else _read_texts(located, name)


def _read_rules(located: LocatedValue, name: str) -> tuple[GeneralRule, ...]:
    items = _read_list(located, name, "rules")
    rules = tuple(_read_rule(item, f"{name}[{at}]") for at, item in enumerate(items))
    for at, rule in enumerate(rules):
        if rule.name in {earlier.name for earlier in rules[:at]}:
            problem = f"{name}: two rules are called {rule.name!r}; rename one"
            raise LocatedProblem(located.line, problem)
    return rules


def _read_rule(located: LocatedValue, name: str) -> GeneralRule:
    fields = _read_mapping(located, name)
    _refuse_unknown(fields, tuple(_RULE_READERS), f"{name}.")
    for required in ("name", "pattern", "message"):
        if required not in fields:
            raise LocatedProblem(located.line, f"{name}.{required}: is required")
    values = {"priority": GENERAL_PRIORITY} | {
        key: _RULE_READERS[key](field, f"{name}.{key}")
        for key, field in fields.items()
        if field.value is not None or key in {"name", "pattern", "message"}
    }
    return GeneralRule(**values)


def _read_pattern(located: LocatedValue, name: str) -> str:
    text = _read_text(located, name)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise LocatedProblem(
            located.line, f"{name}: is not a regular expression ({error})"
        ) from None
    return text


_RULE_READERS: Mapping[str, Callable[[LocatedValue, str], Any]] = {
    "name": _read_text,
    "pattern": _read_pattern,
    "message": _read_text,
    "tools": _read_texts,
    "priority": _read_integer,
    "once": _read_bool,
}

KeyReader = Callable[[SteeringSettings, LocatedValue, str], SteeringSettings]


def _set_field(field: str, read: Callable[[LocatedValue, str], Any]) -> KeyReader:
    return lambda settings, located, name: replace(settings, **{field: read(located, name)})


def _set_rule_field(field: str, read: Callable[[LocatedValue, str], Any]) -> KeyReader:
    def set_it(settings: SteeringSettings, located: LocatedValue, name: str) -> SteeringSettings:
        return replace(settings, rules=replace(settings.rules, **{field: read(located, name)}))

    return set_it


def _set_aliases(settings: SteeringSettings, located: LocatedValue, name: str) -> SteeringSettings:
    aliases = _read_texts(located, name)
    runners = load_runners(find_runners(aliases))
    return replace(settings, rules=replace(settings.rules, aliases=aliases, alias_runners=runners))


def _switch_dangerous(
    settings: SteeringSettings, located: LocatedValue, name: str
) -> SteeringSettings:
    """Enable or disable the sets of dangerous commands; another key selects them."""
    is_on = _read_bool(located, name)
    sets = (settings.dangerous or tuple(DANGEROUS_SETS)) if is_on else ()
    return replace(settings, dangerous=sets)


KEYS: Mapping[str, KeyReader] = {
    "pytest_full_suite_steering_enabled": _set_field("enabled", _read_bool),
    "pytest_full_suite_steering_message": _set_field("message", _read_text),
    "pytest_full_suite_handler_priority": _set_field("priority", _read_integer),
    "session_state_ttl": _set_field("ttl", _read_seconds),
    "pytest_full_suite_bare_directory": _set_rule_field("bare_directory", _read_bare_switch),
    "bare_directory": _set_rule_field("bare_directory", _read_bare_directory),
    "pytest_full_suite_aliases": _set_aliases,
    "runners": _set_rule_field("runners", _read_runners),
    "shell_tools": _set_rule_field("shell_tools", _read_shell_tools),
    "dangerous_commands": _set_field("dangerous", _read_dangerous_sets),
    "dangerous_commands_enabled": _switch_dangerous,
    "steering_rules": _set_field("general", _read_rules),
}
"""The keys of `session:`, in the order of their processing."""
