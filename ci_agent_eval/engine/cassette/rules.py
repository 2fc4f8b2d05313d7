"""Rules for the parts of requests that differ from run to run, and suggestions of such rules.

A rule replaces what a pattern finds in the texts of requests, recorded and new ones, before keys
are made. A rule may therefore be added without recording anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.errors import InputError

SETTING = "cassette_replace"
"""Name of the setting with the rules."""
_ARROW = " => "


@dataclass(frozen=True, slots=True)
class ReplaceRule:
    """A pattern and its replacement."""

    pattern: re.Pattern[str]
    replacement: str

    def __str__(self) -> str:
        return f"{self.pattern.pattern}{_ARROW}{self.replacement}"


def parse_rules(lines: Iterable[str]) -> tuple[ReplaceRule, ...]:
    """Parse rules of the form `PATTERN => REPLACEMENT`. Raises InputError."""
    return tuple(_parse_rule(line) for line in lines if line.strip())


def _parse_rule(line: str) -> ReplaceRule:
    pattern, arrow, replacement = line.partition(_ARROW)
    try:
        rule = ReplaceRule(re.compile(pattern.strip()), replacement.strip())
        rule.pattern.sub(rule.replacement, "")  # an unknown group is an error even without a match
        problem = None if arrow else f"give a pattern, `{_ARROW.strip()}` and a replacement"
        if rule.pattern.match("") is not None:
            problem = "its pattern matches an empty text"
    except (IndexError, re.error) as error:
        problem = str(error)
    if problem is not None:
        raise InputError(f"{SETTING}: {line.strip()!r} is no rule: {problem}")
    return rule


def apply_rules(rules: Sequence[ReplaceRule], value: Any) -> Any:
    """Apply the rules, in order, to each text of a JSON value."""
    if isinstance(value, str):
        for rule in rules:
            value = rule.pattern.sub(rule.replacement, value)
        return value
    if isinstance(value, dict):
        return {name: apply_rules(rules, item) for name, item in value.items()}
    if isinstance(value, list):
        return [apply_rules(rules, item) for item in value]
    return value


def suggest_rules(old: object, new: object) -> tuple[ReplaceRule, ...]:
    """Return the rules that make two values equal; empty if no known kind of text differs."""
    for rule in _KNOWN:
        if apply_rules([rule], old) == apply_rules([rule], new):
            return (rule,)
    if apply_rules(_KNOWN, old) != apply_rules(_KNOWN, new):
        return ()
    needed = list(_KNOWN)
    for rule in _KNOWN:
        fewer = [other for other in needed if other is not rule]
        if apply_rules(fewer, old) == apply_rules(fewer, new):
            needed = fewer
    return tuple(needed)


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d(:\d\d([.,]\d+)?)?"
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_KNOWN = parse_rules(
    (
        rf"{_DATE} => <date>",
        rf"{_TIME} => <time>",
        rf"{_DATE}[T ]{_TIME}(Z|[+-]\d\d:?\d\d)? => <time>",
        rf"({_MONTH}) \d{{1,2}},? \d{{4}} => <date>",
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} => <uuid>",
        r"(/private)?/(tmp|var/folders)/[^\s\"']+ => <temporary path>",
        r"0x[0-9a-f]{6,16} => <address>",
        r"\b[0-9a-f]{16,}\b => <id>",
        r"\b1[0-9]{9}(\.\d+|[0-9]{3})?\b => <timestamp>",
        r"(?i)\b(pid|process id|port)\b(\W{1,3})\d+ => \1\2<number>",
    )
)
"""Kinds of texts that usually differ from run to run."""
