"""Results of other tools: thresholds of their scores, and mappings of files without a reader."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from ci_agent_eval.contract.base import KnownKeysModel
from ci_agent_eval.contract.episode import Outcome

ANY_SCORE = "*"
"""Name of the threshold for every score that has no other one."""

_RULE = re.compile(r"(?P<name>.*\S)?\s*(?P<relation>[<>]=)\s*(?P<limit>[^<>=\s]+)\s*", re.DOTALL)
_FORM = "is not a threshold; write NAME>=NUMBER, or NAME<=NUMBER if lower is better"


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """The limit of a score."""

    limit: float
    is_maximum: bool = False
    """Whether lower scores are better."""

    def accepts(self, value: float) -> bool:
        """Say whether a score is on the right side of the limit, or equal to it."""
        return value <= self.limit if self.is_maximum else value >= self.limit

    def __str__(self) -> str:
        return f"{'at most' if self.is_maximum else 'at least'} {self.limit:.10g}"


def parse_score_thresholds(value: Any) -> Any:
    """Parse a text of rules, quoted as in a shell, or a table of limits by name.

    Raises ValueError for a wrong rule; a value of another type is returned as it is.
    """
    if isinstance(value, str):
        return dict(_parse_rules(value))
    if isinstance(value, Mapping):
        return {name: _parse_limit(name, limit) for name, limit in value.items()}
    return value


def _parse_rules(text: str) -> Mapping[str, ScoreThreshold]:
    found: dict[str, ScoreThreshold] = {}
    for word in shlex.split(text):
        rule = _RULE.fullmatch(word)
        if rule is None or rule["name"] is None:
            raise ValueError(f"{word!r} {_FORM}")
        if rule["name"] in found:
            raise ValueError(f"{rule['name']!r} has two thresholds; keep one of them")
        found[rule["name"]] = _parse_limit(rule["name"], f"{rule['relation']}{rule['limit']}")
    return found


def _parse_limit(name: object, given: object) -> ScoreThreshold:
    if isinstance(given, ScoreThreshold):
        return given
    rule = _RULE.fullmatch(given) if isinstance(given, str) else None
    if isinstance(given, int | float) and not isinstance(given, bool):
        limit, is_maximum = float(given), False
    elif rule is None or rule["name"] is not None:
        raise ValueError(f"{name}: {given!r} is not a limit; write a number, '>= 0.8' or '<= 0.2'")
    else:
        limit, is_maximum = _parse_number(rule["limit"]), rule["relation"] == "<="
    if not math.isfinite(limit):
        raise ValueError(f"{name}: {given!r} is not a finite number")
    return ScoreThreshold(limit, is_maximum)


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


_Path = Annotated[str, Field(min_length=1, max_length=500)]
"""Keys of a record, joined by dots; a number is a position in a list."""


class ResultMapping(KnownKeysModel):
    """`[[mapping]]`: where the records of some files have the data of a result."""

    files: _Path = Field(description="glob of the files, such as `evals/*.json`")
    records: _Path | None = Field(default=None, description="list of records; unset: the file")
    id: _Path
    input: _Path | None = None
    output: _Path | None = None
    agent: _Path | None = None
    input_tokens: _Path | None = None
    output_tokens: _Path | None = None
    cost_usd: _Path | None = None
    latency_ms: _Path | None = None
    outcome: _Path | None = None
    outcomes: dict[str, Outcome] = Field(default_factory=dict, description="by value")
    scores: dict[str, _Path] = Field(default_factory=dict, description="paths by names of scores")
    error: _Path | None = Field(default=None, description="not empty: the record is an error")
    reason: _Path | None = None

    @model_validator(mode="after")
    def _require_verdict(self) -> Self:
        if bool(self.outcome) != bool(self.outcomes):
            raise ValueError("needs outcome, the path, and outcomes, the meaning of its values")
        if self.outcome is None and not self.scores:
            raise ValueError("needs outcome with outcomes, or scores")
        return self


class MappingFile(KnownKeysModel):
    """A file of mappings."""

    mapping: tuple[ResultMapping, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ImportPolicy:
    """How results of other tools are read and judged."""

    thresholds: Mapping[str, ScoreThreshold] = field(default_factory=dict)
    """Thresholds of their scores, by name."""
    mappings: tuple[ResultMapping, ...] = ()
    """Descriptions of files; the first that matches a file is used."""
