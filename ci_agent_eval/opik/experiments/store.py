"""Writing and reading experiments; several processes may write the same one concurrently."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.experiments.database import open_database, open_transaction
from ci_agent_eval.opik.experiments.records import (
    LOST,
    Experiment,
    ExperimentResult,
    ItemContent,
    ScoreRow,
    encode_canonical_json,
)

DEFAULT_PATH = ".agent-eval/experiments.sqlite3"
"""Path of the store, relative to pytest's rootdir or the command's working directory."""

_EXPERIMENTS = """
SELECT e.uid, e.name, d.name, e.started, e.ended, e."commit", e.settings, e.sink, e.sent
FROM experiments e JOIN datasets d ON d.id = e.dataset_id
"""
_RESULTS = """
SELECT r.nodeid, r.outcome, r.reason, r.scores, i.content, r.item_id, r.trace_id, r.attempts,
    r.started, r.ended
FROM results r LEFT JOIN items i ON i.id = r.item_id
WHERE r.experiment = ? ORDER BY r.nodeid
"""


class ExperimentStore:
    """The experiments of one file; every method raises InputError if it cannot be used."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Self:
        """Open the store; `create` creates a missing one."""
        return cls(path, open_database(path, create=create))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def begin(self, experiment: Experiment) -> None:
        """Insert the experiment; of a run's processes, which all do so, the first one counts."""
        with self._transaction():
            dataset = self._get_or_create_dataset(experiment.dataset)
            self._execute(
                "INSERT OR IGNORE INTO experiments (uid, name, dataset_id, started, "
                '"commit", settings, sink) VALUES (?, ?, ?, ?, ?, ?, ?)',
                experiment.uid,
                experiment.name,
                dataset,
                experiment.started,
                experiment.commit,
                encode_canonical_json(dict(experiment.settings)),
                experiment.sink,
            )

    def start(self, uid: str, nodeid: str, trace_id: str, started: str) -> None:
        """Insert a test as an error, its outcome if it never ends. Another attempt replaces it."""
        with self._transaction():
            self._execute(
                "INSERT INTO results (experiment, nodeid, trace_id, outcome, reason, started) "
                "VALUES (?, ?, ?, 'error', ?, ?) ON CONFLICT DO UPDATE SET "
                "trace_id = excluded.trace_id, attempts = attempts + 1, outcome = 'error', "
                "reason = excluded.reason, scores = '[]', item_id = NULL, ended = NULL, "
                "started = excluded.started",
                uid,
                nodeid,
                trace_id,
                LOST,
                started,
            )

    def link(self, uid: str, nodeid: str, content: ItemContent, item_id: str) -> None:
        """Link a test to the item with this content; `item_id` is used if the item is new."""
        with self._transaction():
            (dataset,) = self._fetch_one("SELECT dataset_id FROM experiments WHERE uid = ?", uid)
            self._execute(
                "INSERT OR IGNORE INTO items (id, dataset_id, hash, content) VALUES (?, ?, ?, ?)",
                item_id,
                dataset,
                content.hash,
                encode_canonical_json(content.fields()),
            )
            self._execute(
                "UPDATE results SET item_id = (SELECT id FROM items WHERE dataset_id = ? "
                "AND hash = ?) WHERE experiment = ? AND nodeid = ?",
                dataset,
                content.hash,
                uid,
                nodeid,
            )

    def end(self, uid: str, result: ExperimentResult) -> None:
        """Write a test's outcome, reason, scores and end time."""
        with self._transaction():
            self._execute(
                "UPDATE results SET outcome = ?, reason = ?, scores = ?, ended = ? "
                "WHERE experiment = ? AND nodeid = ?",
                result.outcome,
                result.reason,
                encode_canonical_json([_encode_score(score) for score in result.scores]),
                result.ended,
                uid,
                result.nodeid,
            )

    def finish(self, uid: str, ended: str) -> None:
        """Write the end time of the run."""
        with self._transaction():
            self._execute("UPDATE experiments SET ended = ? WHERE uid = ?", ended, uid)

    def mark_sent(self, uid: str, sent: str) -> None:
        """Mark the experiment as completely sent."""
        with self._transaction():
            self._execute("UPDATE experiments SET sent = ? WHERE uid = ?", sent, uid)

    def set_sink(self, uid: str, sink: str) -> None:
        """Set the server that the experiment is sent to."""
        with self._transaction():
            self._execute("UPDATE experiments SET sink = ? WHERE uid = ?", sink, uid)

    def experiments(self) -> list[Experiment]:
        """Return all experiments, the latest first, with their counts of outcomes."""
        with self._convert_errors():
            rows = self._fetch_all(f"{_EXPERIMENTS} ORDER BY e.started DESC, e.uid DESC")
            counts: dict[str, dict[str, int]] = {}
            for uid, outcome, count in self._fetch_all(
                "SELECT experiment, outcome, COUNT(*) FROM results GROUP BY 1, 2 ORDER BY 1, 2"
            ):
                counts.setdefault(uid, {})[outcome] = count
        return [
            replace(_parse_experiment_row(row), outcomes=counts.get(row[0], {})) for row in rows
        ]

    def experiment(self, uid: str) -> Experiment | None:
        """Return one experiment by its full id, or None."""
        return next((e for e in self.experiments() if e.uid == uid), None)

    def find_unsent(self, sink: str) -> list[Experiment]:
        """Return the experiments for a server that were not sent yet, the oldest first."""
        return [e for e in reversed(self.experiments()) if e.sink == sink and e.sent is None]

    def results(self, uid: str) -> list[ExperimentResult]:
        """Return the results of an experiment, by node id."""
        with self._convert_errors():
            return [_parse_result_row(row) for row in self._fetch_all(_RESULTS, uid)]

    def _get_or_create_dataset(self, name: str) -> int:
        self._execute("INSERT OR IGNORE INTO datasets (name) VALUES (?)", name)
        number: int = self._fetch_one("SELECT id FROM datasets WHERE name = ?", name)[0]
        return number

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._convert_errors(), open_transaction(self._connection):
            yield

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: the experiment store cannot be used ({error}); name another one"
            ) from None

    def _execute(self, sql: str, *values: object) -> None:
        self._connection.execute(sql, values)

    def _fetch_all(self, sql: str, *values: object) -> list[Sequence[Any]]:
        return self._connection.execute(sql, values).fetchall()

    def _fetch_one(self, sql: str, *values: object) -> Sequence[Any]:
        found: Sequence[Any] = self._connection.execute(sql, values).fetchone()
        return found


def _parse_experiment_row(row: Sequence[Any]) -> Experiment:
    uid, name, dataset, started, ended, commit, settings, sink, sent = row
    return Experiment(
        uid=uid,
        name=name,
        dataset=dataset,
        started=started,
        ended=ended,
        commit=commit,
        settings=json.loads(settings),
        sink=sink,
        sent=sent,
    )


def _parse_result_row(row: Sequence[Any]) -> ExperimentResult:
    nodeid, outcome, reason, scores, content, item_id, trace_id, attempts, started, ended = row
    return ExperimentResult(
        nodeid=nodeid,
        outcome=outcome,
        reason=reason,
        scores=tuple(ScoreRow(**score) for score in json.loads(scores)),
        content=None if content is None else ItemContent(**json.loads(content)),
        item_id=item_id,
        trace_id=trace_id,
        attempts=attempts,
        started=started,
        ended=ended,
    )


def _encode_score(score: ScoreRow) -> dict[str, Any]:
    return {"name": score.name, "value": score.value, "reason": score.reason}
