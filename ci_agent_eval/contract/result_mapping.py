"""Mappings: descriptions of files of records whose format has no reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from ci_agent_eval.contract.base import KnownKeysModel
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.contract.score_thresholds import ScoreThreshold

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
