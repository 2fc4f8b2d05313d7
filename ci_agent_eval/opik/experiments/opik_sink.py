"""Sending experiments to Opik through its client: items, experiment, traces with scores.

The protocols below list the used parts of the package `opik` (2.2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from ci_agent_eval.contract.results import Experiment, ExperimentResult, encode_item

BATCH = 50
"""Traces per flush."""

FLUSH_S = 4
"""Timeout of one batch, in seconds."""


class SinkError(Exception):
    """Raised if the server did not accept everything; the message says why."""


class OpikDataset(Protocol):
    """`opik.Dataset`."""

    def get_items(self) -> list[dict[str, Any]]:
        """Return all items, each with its `id`."""

    def insert(self, items: list[dict[str, Any]]) -> None:
        """Add items, each with its `id`."""


class OpikExperimentClient(Protocol):
    """`opik.api_objects.experiment.experiment.Experiment`."""

    def insert(self, experiment_items_references: list[Any]) -> None:
        """Link traces to items of the data set."""


class OpikClient(Protocol):
    """`opik.Opik`."""

    def get_or_create_dataset(self, name: str) -> OpikDataset:
        """Return the data set with a name."""

    def create_experiment(
        self, dataset_name: str, name: str, experiment_config: dict[str, Any]
    ) -> OpikExperimentClient:
        """Create an experiment."""

    def trace(self, **fields: Any) -> Any:
        """Queue a trace."""

    def flush(self, timeout: int) -> bool:
        """Send all queued traces; False if not all of them arrived."""


class OpikSink:
    """Sends experiments to Opik."""

    def __init__(self, client: OpikClient, reference: Callable[..., Any]) -> None:
        """Use a client, and the class `opik.ExperimentItemReferences`."""
        self._client = client
        self._reference = reference

    def send(self, experiment: Experiment) -> None:
        """Send a complete experiment. Raises SinkError if not all of it arrived."""
        results = experiment.results
        items = self._ensure_items(experiment.dataset, results)
        remote = self._client.create_experiment(
            experiment.dataset, experiment.name, _build_configuration(experiment)
        )
        for start in range(0, len(results), BATCH):
            batch = {make_uuid7(): result for result in results[start : start + BATCH]}
            for trace_id, result in batch.items():
                self._client.trace(**build_trace_fields(result, trace_id))
            self._flush()
            remote.insert(
                experiment_items_references=[
                    self._reference(
                        dataset_item_id=items[encode_item(result.item.fields)], trace_id=trace_id
                    )
                    for trace_id, result in batch.items()
                ]
            )
            self._flush()

    def _ensure_items(self, name: str, results: Sequence[ExperimentResult]) -> Mapping[str, str]:
        """Return the ids of the results' items by content; missing items are inserted."""
        dataset = self._client.get_or_create_dataset(name)
        ids = {encode_item(_remove_id(item)): str(item["id"]) for item in dataset.get_items()}
        missing = {encode_item(result.item.fields): result.item.fields for result in results}
        added = {
            key: {"id": make_uuid7(), **fields} for key, fields in missing.items() if key not in ids
        }
        if added:
            dataset.insert(list(added.values()))
        return ids | {key: str(item["id"]) for key, item in added.items()}

    def _flush(self) -> None:
        if self._client.flush(timeout=FLUSH_S) is False:
            raise SinkError("not all of it arrived in time")


def _build_configuration(experiment: Experiment) -> dict[str, Any]:
    commit = {} if experiment.commit is None else {"commit": experiment.commit}
    return {**experiment.configuration, **commit}


def build_trace_fields(result: ExperimentResult, trace_id: str) -> dict[str, Any]:
    """Build the trace of a test: its input, outcome and scores."""
    inputs = {key: value for key, value in result.item.input.items() if key != "test_name"}
    return {
        "id": trace_id,
        "name": result.nodeid,
        "start_time": datetime.fromisoformat(result.started),
        "end_time": None if result.ended is None else datetime.fromisoformat(result.ended),
        "input": inputs,
        "output": {"outcome": result.outcome, "reason": result.reason},
        "metadata": result.item.metadata,
        "feedback_scores": [
            {"name": score.name, "value": score.value, "reason": score.reason}
            for score in result.scores
        ],
    }


def _remove_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


def make_uuid7() -> str:
    """Return a new UUID of version 7 (RFC 9562, 5.7), as Opik's ids are."""
    number = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=number & ~(0b11 << 62) | 0b10 << 62))
