"""Stands in for the package `opik` 2.2: those signatures that are used, over a loopback server.

Names and parameters are those of its `api_objects/opik_client.py`, `dataset.py` and
`experiment.py`; what it queues it sends when it is flushed.
"""

# ruff: noqa: A002, PLR0917 - the names and parameters of the package it stands for

from __future__ import annotations

import dataclasses
import json
import os
import urllib.error
import urllib.request
import uuid
from typing import Any

from opik import hooks


@dataclasses.dataclass
class ExperimentItemReferences:
    dataset_item_id: str
    trace_id: str
    project_name: str | None = None
    execution_policy: dict[str, Any] | None = None


class Opik:
    def __init__(
        self,
        project_name: str | None = None,
        workspace: str | None = None,
        host: str | None = None,
        api_key: str | None = None,
        batching: bool = True,
        _use_batching: bool = False,
        _show_misconfiguration_message: bool = True,
    ) -> None:
        self._queue: list[tuple[str, Any]] = []

    def get_or_create_dataset(
        self, name: str, description: str | None = None, project_name: str | None = None
    ) -> Dataset:
        _call("datasets", {"name": name})
        return Dataset(name)

    def create_experiment(
        self,
        dataset_name: str,
        name: str | None = None,
        experiment_config: dict[str, Any] | None = None,
        prompt: Any = None,
        prompts: Any = None,
        type: str = "regular",
        evaluation_method: str = "dataset",
        optimization_id: str | None = None,
        tags: list[str] | None = None,
        dataset_version_id: str | None = None,
        project_name: str | None = None,
        experiment_id: str | None = None,
    ) -> Experiment:
        made = experiment_id or str(uuid.uuid4())
        fields = {"id": made, "name": name, "dataset": dataset_name}
        _call("experiments", {**fields, "config": experiment_config})
        return Experiment(made, self)

    def trace(self, **fields: Any) -> None:
        known = {"id", "name", "start_time", "end_time", "input", "output", "metadata"}
        assert set(fields) <= known | {"tags", "feedback_scores", "project_name", "error_info"}
        self._queue.append(("traces", fields))

    def flush(self, timeout: int | None = None) -> bool:
        queued, self._queue = self._queue, []
        try:
            for path, body in queued:
                _call(path, body)
        except OSError:
            return False
        return True


class Dataset:
    def __init__(self, name: str) -> None:
        self._name = name

    def get_items(
        self, nb_samples: int | None = None, filter_string: str | None = None
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _call("items/find", {"dataset": self._name})
        return found

    def insert(
        self, items: list[dict[str, Any]], num_threads: int = 8, deduplication: bool = True
    ) -> None:
        _call("items", {"dataset": self._name, "items": items})


class Experiment:
    def __init__(self, id: str, client: Opik) -> None:
        self._id = id
        self._client = client

    def insert(self, experiment_items_references: list[ExperimentItemReferences]) -> None:
        for found in experiment_items_references:
            link = {"experiment": self._id, **dataclasses.asdict(found)}
            self._client._queue.append(("links", link))


def _call(path: str, body: Any) -> Any:
    url = os.environ["OPIK_URL_OVERRIDE"].rstrip("/") + "/" + path
    request = urllib.request.Request(url, json.dumps(body, default=str).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=hooks.timeout_s()) as answer:
        return json.loads(answer.read() or b"null")
