"""Redact secrets in loaded results, before anything else uses them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.base import FrozenModel
from ci_agent_eval.contract.findings import SuiteStop
from ci_agent_eval.redaction import make_distinct_names, redact_value, remove_secret_pairs

Redact = Callable[[str], str]
"""Redacts secrets in a text."""
EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""

_CACHE_SIZE = 4096
_FIXED_WORDS = frozenset(
    {
        *("allowed_stops", "cause", "gate", "kind", "missing_evidence", "outcome"),
        *("schema_version", "severity", "state", "statistic", "stop_reason", "type"),
    }
)
"""Fields whose texts are words of the contract."""
_INTERNED = frozenset({"checks", "conditions", "steps"})
"""Fields of records whose values thousands of episodes share."""
_NUMBERS = frozenset({bool, float, int})


@dataclass(frozen=True, slots=True)
class RedactedNames:
    """Redacted names of scenarios and tests; they stay distinct."""

    scenarios: Mapping[str, str]
    nodeids: Mapping[str, str]

    @classmethod
    def build(cls, keys: Iterable[EpisodeKey], redact: Redact) -> RedactedNames:
        """Redact the names in the keys of episodes."""
        keys = list(keys)
        return cls(
            make_distinct_names((key[0] for key in keys), redact),
            make_distinct_names((key[1] for key in keys), redact),
        )

    def rename_key(self, key: EpisodeKey) -> EpisodeKey:
        """Return the key with redacted names."""
        return self.scenarios[key[0]], self.nodeids[key[1]], key[2], key[3]


def redact_results(loaded: LoadedResults, redact: Redact) -> LoadedResults:
    """Redact secrets in loaded results, which other producers may have written.

    Episodes that differ only in a secret are numbered. A confirmation's records are counted, and
    their texts are shown nowhere.
    """
    names = RedactedNames.build((record.key for record in loaded.episodes), redact)
    parts = replace(loaded, confirmation=None)
    clean: LoadedResults = _ValueRedactor(names, redact).redact(parts)
    return replace(
        clean,
        episodes=tuple(sorted(clean.episodes, key=attrgetter("key"))),
        suites=tuple(sorted(clean.suites)),
        confirmation=loaded.confirmation,
    )


class _ValueRedactor:
    """Redacts every text of a value but for fixed words, in whatever field it is."""

    def __init__(self, names: RedactedNames, redact: Redact) -> None:
        self._names: Mapping[str, Mapping[str, str]] = {
            **dict.fromkeys(
                ("scenario_id", "scenarios", "unafforded", "left_out"), names.scenarios
            ),
            **dict.fromkeys(("nodeid", "where"), names.nodeids),
        }
        self._done: dict[int, Any] = {}
        """Redacted values of interned fields, by the identity of the loaded ones."""
        # Files, agents and models are the same in thousands of episodes.
        self._redact_text = functools.lru_cache(_CACHE_SIZE)(
            lambda text: remove_secret_pairs(redact(text))
        )

    def redact(self, value: Any, name: str = "") -> Any:
        """Return the value of a field; the same one where nothing is a secret."""
        if isinstance(value, str):
            if name in _FIXED_WORDS:
                return value
            return self._names.get(name, {}).get(value) or self._redact_text(value)
        if name not in _INTERNED:
            return self._redact_parts(value, name)
        if id(value) not in self._done:
            self._done[id(value)] = self._redact_parts(value, name)
        return self._done[id(value)]

    def _redact_parts(self, value: Any, name: str) -> Any:
        if hasattr(value, "_asdict"):
            changed = self._list_changes(value._asdict())
            return value._replace(**changed) if changed else value
        if isinstance(value, tuple):
            items = tuple([self.redact(item, name) for item in value])
            return items if items != value else value
        if isinstance(value, FrozenModel):
            changed = self._list_changes(value.__dict__)
            return value.model_copy(update=changed) if changed else value
        if is_dataclass(value) and not isinstance(value, type | SuiteStop):
            changed = self._list_changes({f: getattr(value, f) for f in _list_fields(type(value))})
            return replace(value, **changed) if changed else value
        return value

    def _list_changes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that hold a secret, without it."""
        changed = {}
        for name, value in values.items():
            if value and type(value) not in _NUMBERS:
                new = self.redact(value, name)
                if new is not value and new != value:
                    changed[name] = new
        return changed


@functools.cache
def _list_fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def redact_json(value: Any, redact: Redact) -> Any:
    """Redact secrets in the strings and object keys of a JSON value."""
    if isinstance(value, str):
        return remove_secret_pairs(redact(value))
    if isinstance(value, list):
        return [redact_json(item, redact) for item in value]
    if isinstance(value, dict):
        names = make_distinct_names(value, redact)
        return {
            names[key]: redact_json(redact_value(key, item), redact) for key, item in value.items()
        }
    return value
