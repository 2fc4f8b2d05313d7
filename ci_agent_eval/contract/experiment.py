"""The experiment of a run: its tests as trials on the items of a data set, as Opik has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from ci_agent_eval.contract.base import FrozenModel
from ci_agent_eval.contract.episode import Outcome, Score


class ExperimentItem(FrozenModel):
    """An item of a data set; equal contents are the same item."""

    input: dict[str, JsonValue] = Field(description="the test's name, and its linked input")
    expected_output: dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The parts that are set, by their names in a data set."""
        return self.model_dump(mode="json", exclude_none=True)


class ExperimentResult(FrozenModel):
    """The result of one test."""

    nodeid: str
    outcome: Outcome
    reason: str | None = None
    item: ExperimentItem
    scores: tuple[Score, ...] = ()
    started: str = Field(description="ISO 8601, UTC")
    ended: str | None = Field(default=None, description="unset: it did not end")


class Experiment(FrozenModel):
    """One run of tests on a data set."""

    name: str
    dataset: str
    commit: str | None = None
    configuration: dict[str, JsonValue] = Field(default_factory=dict)
    results: tuple[ExperimentResult, ...] = Field(default=(), description="by node id")


def build_item(
    test_name: str,
    linked_input: object = None,
    expected_output: object = None,
    metadata: object = None,
) -> ExperimentItem:
    """Build an item as Opik's plugin does: values that are not objects are wrapped in one.

    The test's name is part of the input. All values must be JSON.
    """
    inputs = _wrap_value("input", linked_input) or {}
    return ExperimentItem(
        input={"test_name": test_name, **inputs},
        expected_output=_wrap_value("expected_output", expected_output),
        metadata=_wrap_value("metadata", metadata),
    )


def _wrap_value(name: str, value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    return dict(value) if isinstance(value, Mapping) else {name: value}


def encode_item(fields: Mapping[str, Any]) -> str:
    """Encode an item's content as text that is identical for equal contents."""
    return json.dumps(fields, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
