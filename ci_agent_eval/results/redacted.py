"""Taking secrets out of what was loaded, before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from ci_agent_eval.facts import EpisodeFacts, Loaded

Redact = Callable[[str], str]
EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""
Value = TypeVar("Value")

# Words of the contract, which are the same whatever the secrets are.
_FIXED = frozenset(
    {"kind", "state", "outcome", "gate", "severity", "statistic", "schema_version", "stop_reason"}
)


@dataclass(frozen=True, slots=True)
class Names:
    """Ids without secrets, and no two ids under one name."""

    scenarios: Mapping[str, str]
    nodeids: Mapping[str, str]

    @classmethod
    def of(cls, keys: Iterable[EpisodeKey], redact: Redact) -> Names:
        """Name the scenarios and tests of these episodes."""
        keys = list(keys)
        return cls(
            distinct_names((key[0] for key in keys), redact),
            distinct_names((key[1] for key in keys), redact),
        )

    def key(self, key: EpisodeKey) -> EpisodeKey:
        """Return the key as it is written."""
        return self.scenarios[key[0]], self.nodeids[key[1]], key[2], key[3]


def distinct_names(ids: Iterable[str], redact: Redact) -> dict[str, str]:
    """Return what each id is called once secrets are out of it.

    Ids that are the same then are told apart by numbers, in the order of the full ids,
    as the plugin does it. An id without a secret keeps its name.
    """
    clean = {full: redact(full) for full in sorted(set(ids))}
    taken = {full for full, name in clean.items() if full == name}
    next_number: dict[str, int] = {}
    for full, name in clean.items():
        if full == name:
            continue
        number, candidate = next_number.get(name, 1), name
        while number > 1 or candidate in taken:
            candidate = name if number == 1 else f"{name}#{number}"
            number += 1
            if candidate not in taken:
                break
        next_number[name] = max(number, 2)
        taken.add(candidate)
        clean[full] = candidate
    return clean


def redacted(loaded: Loaded, redact: Redact) -> Loaded:
    """Return the same without secrets; producers other than ours may have written some."""
    names = Names.of(map(_key, loaded.episodes), redact)

    def place(text: str) -> str:
        return names.nodeids.get(text) or redact(text)

    episodes = (_facts(facts, names, redact) for facts in loaded.episodes)
    return Loaded(
        episodes=tuple(sorted(episodes, key=_key)),
        tests=_clean(loaded.tests, redact),
        sessions=_clean(loaded.sessions, redact),
        sources=_clean(loaded.sources, redact),
        findings=tuple(
            replace(f, where=place(f.where), message=redact(f.message)) for f in loaded.findings
        ),
    )


def redacted_json(value: Any, redact: Redact) -> Any:
    """Return a JSON value without secrets in its texts; keys of objects are texts too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted_json(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): redacted_json(item, redact) for key, item in value.items()}
    return value


def _key(facts: EpisodeFacts) -> EpisodeKey:
    return facts.scenario_id, facts.nodeid or "", facts.iteration, facts.attempt


def _facts(facts: EpisodeFacts, names: Names, redact: Redact) -> EpisodeFacts:
    return replace(
        _clean(facts, redact),
        scenario_id=names.scenarios[facts.scenario_id],
        nodeid=None if facts.nodeid is None else names.nodeids[facts.nodeid],
    )


def _clean(value: Value, redact: Redact) -> Value:
    """Return the value without secrets in any of its texts, however deep.

    Every text of every field, so that a field added later is clean too.
    """
    return cast("Value", _cleaned(value, redact))


def _cleaned(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, tuple):
        cleaned = (_cleaned(item, redact) for item in value)
        if not hasattr(value, "_fields"):
            return tuple(cleaned)
        items = zip(value._fields, value, strict=True)
        return type(value)(*(_field(name, item, redact) for name, item in items))
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={name: _field(name, item, redact) for name, item in value if item is not None}
        )
    if is_dataclass(value) and not isinstance(value, type):
        texts = {f.name: _field(f.name, getattr(value, f.name), redact) for f in fields(value)}
        return replace(value, **texts)
    return value


def _field(name: str, value: Any, redact: Redact) -> Any:
    return value if name in _FIXED else _cleaned(value, redact)
