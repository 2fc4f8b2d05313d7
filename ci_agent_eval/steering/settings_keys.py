"""Keys of the configuration file, with the validation of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, get_args

from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.model import BareDirectory
from ci_agent_eval.steering.policy.runner_program import RunnerProgram
from ci_agent_eval.steering.policy.settings import GENERAL_PRIORITY, GeneralRule, SteeringSettings
from ci_agent_eval.steering.runners import RUNNER_NAMES, find_runners, load_runners

SECTION = "session"
NESTED = "tool_call_reactor"
"""A table in `session`; each key may be in either of the two."""


def parse_settings(document: LocatedValue) -> SteeringSettings:
    """Parse the file's content. Raises LocatedProblem."""
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
    ours = [key for key, located in root.items() if _has_own_key(located.value)]
    for key in get_close_matches(SECTION, ours, n=1, cutoff=0.8):
        raise LocatedProblem(root[key].line, f"unknown key {key!r}; did you mean {SECTION!r}?")


def _has_own_key(value: object) -> bool:
    return isinstance(value, dict) and not {*KEYS, NESTED}.isdisjoint(value)


def _merge_tables(
    session: Mapping[str, LocatedValue], nested: Mapping[str, LocatedValue]
) -> Iterator[tuple[str, LocatedValue]]:
    for name in KEYS:
        found = [table[name] for table in (session, nested) if name in table]
        if len(found) == 2 and found[0].to_plain() != found[1].to_plain():
            raise LocatedProblem(
                found[1].line, f"{name}: differs from line {found[0].line}; keep one"
            )
        for located in found[:1]:
            yield name, located


def _refuse_unknown(table: Mapping[str, LocatedValue], known: tuple[str, ...], prefix: str) -> None:
    for key, located in table.items():
        if key not in known:
            hint = _suggest(key, known, "known keys")
            raise LocatedProblem(located.line, f"unknown key {prefix + key!r}; {hint}")


def _suggest(name: str, known: Sequence[str], label: str = "known") -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"{label}: {', '.join(known)}"


def _build_error(located: LocatedValue, name: str, requirement: str) -> LocatedProblem:
    shown = repr(located.to_plain())
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return LocatedProblem(located.line, f"{name}: must be {requirement} (given: {shown})")


def _read_mapping(located: LocatedValue, name: str) -> dict[str, LocatedValue]:
    if located.value is None:
        return {}
    if not isinstance(located.value, dict):
        raise _build_error(located, name, "a mapping of keys to values")
    return located.value


def _read_bool(located: LocatedValue, name: str) -> bool:
    if not isinstance(located.value, bool):
        raise _build_error(located, name, "true or false")
    return located.value


def _read_bare_switch(located: LocatedValue, name: str) -> BareDirectory:
    return "full" if _read_bool(located, name) else "targeted"


def _read_bare_directory(located: LocatedValue, name: str) -> BareDirectory:
    choices: tuple[BareDirectory, ...] = get_args(BareDirectory)
    for value in choices:
        if located.value == value:
            return value
    raise _build_error(located, name, " or ".join(choices))


def _read_text(located: LocatedValue, name: str) -> str:
    if not isinstance(located.value, str) or not located.value.strip():
        raise _build_error(located, name, "a text that is not empty")
    return located.value.strip()


def _read_integer(located: LocatedValue, name: str) -> int:
    value = located.value
    limit = 10**6
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > limit:
        raise _build_error(located, name, f"a whole number from {-limit} to {limit}")
    return value


def _read_seconds(located: LocatedValue, name: str) -> float:
    value: Any = located.value
    # At most ten years; smaller integers are exact as floats.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 315e6:
        raise _build_error(located, name, "a number of seconds above 0")
    return float(value)


def _read_texts(located: LocatedValue, name: str) -> tuple[str, ...]:
    if not isinstance(located.value, tuple):
        raise _build_error(located, name, "a list of texts")
    return tuple(_read_text(item, name) for item in located.value)


def _read_dangerous_sets(located: LocatedValue, name: str) -> tuple[str, ...]:
    names = _read_texts(located, name)
    for each in names:
        if each not in DANGEROUS_SETS:
            raise LocatedProblem(
                located.line, f"{name}: unknown {each!r}; known: {', '.join(DANGEROUS_SETS)}"
            )
    return names


def _read_runners(located: LocatedValue, name: str) -> tuple[RunnerProgram, ...]:
    names = _read_texts(located, name)
    for each in names:
        if each not in RUNNER_NAMES:
            raise LocatedProblem(
                located.line, f"{name}: unknown {each!r}; {_suggest(each, RUNNER_NAMES)}"
            )
    return load_runners(dict.fromkeys(names))


def _read_rules(located: LocatedValue, name: str) -> tuple[GeneralRule, ...]:
    if not isinstance(located.value, tuple):
        raise _build_error(located, name, "a list of rules")
    rules = tuple(_read_rule(item, f"{name}[{at}]") for at, item in enumerate(located.value))
    for at, rule in enumerate(rules):
        if rule.name in {earlier.name for earlier in rules[:at]}:
            raise LocatedProblem(
                located.line, f"{name}: two rules are called {rule.name!r}; rename one"
            )
    return rules


_RULE_KEYS = ("name", "pattern", "message", "tools", "priority", "once")


def _read_rule(located: LocatedValue, name: str) -> GeneralRule:
    fields = _read_mapping(located, name)
    _refuse_unknown(fields, _RULE_KEYS, f"{name}.")
    for required in ("name", "pattern", "message"):
        if required not in fields:
            raise LocatedProblem(located.line, f"{name}.{required}: is required")
    tools, priority, once = (fields.get(key) for key in ("tools", "priority", "once"))
    return GeneralRule(
        name=_read_text(fields["name"], f"{name}.name"),
        pattern=_read_pattern(fields["pattern"], f"{name}.pattern"),
        message=_read_text(fields["message"], f"{name}.message"),
        tools=() if tools is None else _read_texts(tools, f"{name}.tools"),
        priority=GENERAL_PRIORITY
        if priority is None
        else _read_integer(priority, f"{name}.priority"),
        once=once is not None and _read_bool(once, f"{name}.once"),
    )


def _read_pattern(located: LocatedValue, name: str) -> str:
    text = _read_text(located, name)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise LocatedProblem(located.line, f"{name}: is no regular expression ({error})") from None
    return text


def _switch_dangerous(
    settings: SteeringSettings, located: LocatedValue, name: str
) -> SteeringSettings:
    """Enable or disable the sets of dangerous commands; another key selects them."""
    if not _read_bool(located, name):
        return replace(settings, dangerous=())
    return replace(settings, dangerous=settings.dangerous or tuple(DANGEROUS_SETS))


def _read_shell_tools(located: LocatedValue, name: str) -> dict[str, tuple[str, ...]]:
    """Read names of tools with one or several names of arguments."""
    tools = _read_mapping(located, name)
    if "" in {tool.strip() for tool in tools}:
        raise _build_error(located, name, "a mapping of tools, none of them an empty text")
    return {tool: _read_argument_names(keys, f"{name}.{tool}") for tool, keys in tools.items()}


def _read_argument_names(located: LocatedValue, name: str) -> tuple[str, ...]:
    if located.value is None:
        return ()
    return (
        (_read_text(located, name),)
        if isinstance(located.value, str)
        else _read_texts(located, name)
    )


KeyReader = Callable[[SteeringSettings, LocatedValue, str], SteeringSettings]


def _set_field(field: str, read: Callable[[LocatedValue, str], Any]) -> KeyReader:
    return lambda settings, located, name: replace(settings, **{field: read(located, name)})


def _set_rule_field(field: str, read: Callable[[LocatedValue, str], Any]) -> KeyReader:
    def set_it(settings: SteeringSettings, located: LocatedValue, name: str) -> SteeringSettings:
        return replace(settings, rules=replace(settings.rules, **{field: read(located, name)}))

    return set_it


def _set_aliases(settings: SteeringSettings, located: LocatedValue, name: str) -> SteeringSettings:
    aliases = _read_texts(located, name)
    rules = replace(
        settings.rules, aliases=aliases, alias_runners=load_runners(find_runners(aliases))
    )
    return replace(settings, rules=rules)


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
