"""The keys of the configuration file: their names, their values, what each must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ci_agent_eval.steering.located import Located, Wrong
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.settings import GENERAL_PRIORITY, GeneralRule, SteeringSettings

SECTION = "session"
NESTED = "tool_call_reactor"
"""The document has some keys in this table inside of `session`; all may stand in either."""


def settings_of(document: Located) -> SteeringSettings:
    """Read the file's content. Raises Wrong."""
    outer = _mapping(document, "the file")
    _refuse_unknown(outer, (SECTION,), "")
    session = _mapping(outer[SECTION], SECTION) if SECTION in outer else {}
    _refuse_unknown(session, (*KEYS, NESTED), f"{SECTION}.")
    inner = _mapping(session[NESTED], f"{SECTION}.{NESTED}") if NESTED in session else {}
    _refuse_unknown(inner, tuple(KEYS), f"{SECTION}.{NESTED}.")
    settings = SteeringSettings()
    for name, given in _given(session, inner):
        settings = KEYS[name](settings, given, name)
    return settings


def _given(
    session: Mapping[str, Located], inner: Mapping[str, Located]
) -> Iterator[tuple[str, Located]]:
    for name in KEYS:
        found = [table[name] for table in (session, inner) if name in table]
        if len(found) == 2 and _plain(found[0]) != _plain(found[1]):
            raise Wrong(found[1].line, f"{name}: differs from line {found[0].line}; keep one")
        for given in found[:1]:
            yield name, given


def _plain(given: Located) -> object:
    if isinstance(given.value, dict):
        return {key: _plain(value) for key, value in given.value.items()}
    if isinstance(given.value, tuple):
        return [_plain(value) for value in given.value]
    return given.value


def _refuse_unknown(table: Mapping[str, Located], known: tuple[str, ...], prefix: str) -> None:
    for key, given in table.items():
        if key not in known:
            nearest = get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known keys: {', '.join(known)}"
            raise Wrong(given.line, f"unknown key {prefix + key!r}; {hint}")


def _wrong(given: Located, name: str, must: str) -> Wrong:
    shown = repr(_plain(given))
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return Wrong(given.line, f"{name}: must be {must} (given: {shown})")


def _mapping(given: Located, name: str) -> dict[str, Located]:
    if given.value is None:
        return {}
    if not isinstance(given.value, dict):
        raise _wrong(given, name, "a mapping of keys to values")
    return given.value


def _bool(given: Located, name: str) -> bool:
    if not isinstance(given.value, bool):
        raise _wrong(given, name, "true or false")
    return given.value


def _text(given: Located, name: str) -> str:
    if not isinstance(given.value, str) or not given.value.strip():
        raise _wrong(given, name, "a text that is not empty")
    return given.value.strip()


def _whole(given: Located, name: str, least: int = -(10**6)) -> int:
    value = given.value
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10**6:
        raise _wrong(given, name, f"a whole number from {least} to {10**6}")
    return value


def _seconds(given: Located, name: str) -> float:
    value: Any = given.value
    # Ten years: nobody means more, and within it every whole number is a float.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 315e6:
        raise _wrong(given, name, "a number of seconds above 0")
    return float(value)


def _texts(given: Located, name: str) -> tuple[str, ...]:
    if not isinstance(given.value, tuple):
        raise _wrong(given, name, "a list of texts")
    return tuple(_text(item, name) for item in given.value)


def _sets(given: Located, name: str) -> tuple[str, ...]:
    names = _texts(given, name)
    for each in names:
        if each not in DANGEROUS_SETS:
            raise Wrong(given.line, f"{name}: unknown {each!r}; known: {', '.join(DANGEROUS_SETS)}")
    return names


def _rules(given: Located, name: str) -> tuple[GeneralRule, ...]:
    if not isinstance(given.value, tuple):
        raise _wrong(given, name, "a list of rules")
    rules = tuple(_rule(item, f"{name}[{at}]") for at, item in enumerate(given.value))
    for at, rule in enumerate(rules):
        if rule.name in {before.name for before in rules[:at]}:
            raise Wrong(given.line, f"{name}: two rules are called {rule.name!r}; rename one")
    return rules


_RULE_KEYS = ("name", "pattern", "message", "tools", "priority", "once")


def _rule(given: Located, name: str) -> GeneralRule:
    fields = _mapping(given, name)
    _refuse_unknown(fields, _RULE_KEYS, f"{name}.")
    for required in ("name", "pattern", "message"):
        if required not in fields:
            raise Wrong(given.line, f"{name}.{required}: is required")
    tools, priority, once = (fields.get(key) for key in ("tools", "priority", "once"))
    return GeneralRule(
        name=_text(fields["name"], f"{name}.name"),
        pattern=_pattern(fields["pattern"], f"{name}.pattern"),
        message=_text(fields["message"], f"{name}.message"),
        tools=() if tools is None else _texts(tools, f"{name}.tools"),
        priority=GENERAL_PRIORITY if priority is None else _whole(priority, f"{name}.priority"),
        once=once is not None and _bool(once, f"{name}.once"),
    )


def _pattern(given: Located, name: str) -> str:
    text = _text(given, name)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise Wrong(given.line, f"{name}: is no regular expression ({error})") from None
    return text


def _dangerous(settings: SteeringSettings, given: Located, name: str) -> SteeringSettings:
    """Switch the sets on or off; which ones they are, another key says."""
    if not _bool(given, name):
        return replace(settings, dangerous=())
    return replace(settings, dangerous=settings.dangerous or tuple(DANGEROUS_SETS))


def _shell_tools(given: Located, name: str) -> dict[str, tuple[str, ...]]:
    """Read names of tools with the names of their arguments; one name may stand alone."""
    tools = _mapping(given, name)
    if "" in {tool.strip() for tool in tools}:
        raise _wrong(given, name, "a mapping of tools, none of them an empty text")
    return {tool: _argument_names(keys, f"{name}.{tool}") for tool, keys in tools.items()}


def _argument_names(given: Located, name: str) -> tuple[str, ...]:
    if given.value is None:
        return ()
    return (_text(given, name),) if isinstance(given.value, str) else _texts(given, name)


Reader = Callable[[SteeringSettings, Located, str], SteeringSettings]


def _field(field: str, read: Callable[[Located, str], Any]) -> Reader:
    return lambda settings, given, name: replace(settings, **{field: read(given, name)})


def _rule_field(field: str, read: Callable[[Located, str], Any]) -> Reader:
    def set_it(settings: SteeringSettings, given: Located, name: str) -> SteeringSettings:
        return replace(settings, rules=replace(settings.rules, **{field: read(given, name)}))

    return set_it


KEYS: Mapping[str, Reader] = {
    "pytest_full_suite_steering_enabled": _field("enabled", _bool),
    "pytest_full_suite_steering_message": _field("message", _text),
    "pytest_full_suite_handler_priority": _field("priority", _whole),
    "session_state_ttl": _field("ttl", _seconds),
    "pytest_full_suite_bare_directory": _rule_field("bare_directory_is_full", _bool),
    "pytest_full_suite_aliases": _rule_field("aliases", _texts),
    "pytest_full_suite_max_collected": _rule_field(
        "max_collected", lambda given, name: _whole(given, name, least=0)
    ),
    "shell_tools": _rule_field("shell_tools", _shell_tools),
    "dangerous_commands": _field("dangerous", _sets),
    "dangerous_commands_enabled": _dangerous,
    "steering_rules": _field("general", _rules),
}
"""What may stand in `session:`, in the order in which it is read."""
