"""Sending experiments to Opik through its client: items, experiment, traces with scores.

The protocols below list the used parts of the package `opik` (2.2). Ids are created when a
result is stored locally, so that a repeated send after an interruption finds the traces that
have arrived.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from ci_agent_eval.opik.experiments.records import (
    Experiment,
    ExperimentResult,
    build_content,
    encode_canonical_json,
)

BATCH = 50
"""Traces per flush; each flush shows that the server is alive."""

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

    def get_items(self) -> list[Any]:
        """Return the items, each with its `trace_id`."""

    def insert(self, experiment_items_references: list[Any]) -> None:
        """Link traces to items of the data set."""


class OpikClient(Protocol):
    """`opik.Opik`."""

    def get_or_create_dataset(self, name: str) -> OpikDataset:
        """Return the data set with a name."""

    def create_experiment(
        self,
        dataset_name: str,
        name: str,
        experiment_config: dict[str, Any],
        *,
        experiment_id: str,
    ) -> OpikExperimentClient:
        """Create an experiment."""

    def get_experiment_by_id(self, id: str) -> OpikExperimentClient:  # noqa: A002 - its name there
        """Return an experiment by its id; raises if it does not exist."""

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

    def send(
        self,
        experiment: Experiment,
        results: Sequence[ExperimentResult],
        on_step: Callable[[], None],
    ) -> None:
        """Send a complete experiment. Raises SinkError if not all of it arrived."""
        items = self._ensure_items(experiment.dataset, results)
        on_step()
        remote = self._get_or_create_experiment(experiment)
        arrived = {item.trace_id for item in remote.get_items()}
        on_step()
        missing = [result for result in results if result.trace_id not in arrived]
        for batch in _split_batches(missing):
            for result in batch:
                self._client.trace(**build_trace_fields(result))
            self._flush()
            on_step()
            ids = [(items[_build_content_key(result)], result.trace_id) for result in batch]
            references = [self._reference(dataset_item_id=i, trace_id=t) for i, t in ids]
            remote.insert(experiment_items_references=references)
            self._flush()
            on_step()

    def _ensure_items(self, name: str, results: Sequence[ExperimentResult]) -> dict[str, str]:
        """Return the ids of the results' items by content; missing items are inserted."""
        dataset = self._client.get_or_create_dataset(name)
        items = dataset.get_items()
        known = {encode_canonical_json(_remove_id(item)): str(item["id"]) for item in items}
        fresh: dict[str, dict[str, Any]] = {}
        for result in results:
            key = _build_content_key(result)
            if key not in known:
                fresh[key] = {"id": result.item_id or result.trace_id, **_get_content(result)}
        if fresh:
            dataset.insert(list(fresh.values()))
        return known | {key: str(item["id"]) for key, item in fresh.items()}

    def _get_or_create_experiment(self, experiment: Experiment) -> OpikExperimentClient:
        with contextlib.suppress(Exception):  # any exception means: it does not exist
            return self._client.get_experiment_by_id(experiment.uid)
        config = {**experiment.settings, "commit": experiment.commit}
        return self._client.create_experiment(
            dataset_name=experiment.dataset,
            name=experiment.name,
            experiment_config={key: value for key, value in config.items() if value is not None},
            experiment_id=experiment.uid,
        )

    def _flush(self) -> None:
        if self._client.flush(timeout=FLUSH_S) is False:
            raise SinkError("not all of it arrived in time")


def build_trace_fields(result: ExperimentResult) -> dict[str, Any]:
    """Build the trace of a test: its input, outcome and scores."""
    content = _get_content(result)
    given = {key: value for key, value in content["input"].items() if key != "test_name"}
    return {
        "id": result.trace_id,
        "name": result.nodeid,
        "start_time": datetime.fromisoformat(result.started),
        "end_time": None if result.ended is None else datetime.fromisoformat(result.ended),
        "input": given,
        "output": {"outcome": result.outcome, "reason": result.reason},
        "metadata": content.get("metadata"),
        "feedback_scores": [
            {"name": score.name, "value": score.value, "reason": score.reason}
            for score in result.scores
        ],
    }


def _get_content(result: ExperimentResult) -> dict[str, Any]:
    """Return the content of a result's item; only the test's name if the test never ran."""
    return (result.content or build_content(result.nodeid, given={})).fields()


def _build_content_key(result: ExperimentResult) -> str:
    return encode_canonical_json(_get_content(result))


def _remove_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


def _split_batches(results: Sequence[ExperimentResult]) -> Iterator[Sequence[ExperimentResult]]:
    for start in range(0, len(results), BATCH):
        yield results[start : start + BATCH]
