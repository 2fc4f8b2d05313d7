"""Writing and reading experiments. Several processes may write the same one at once."""

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
"""Where the store is, below pytest's rootdir or the folder that the command runs in."""

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
    """The experiments of one file; every method raises InputError where it cannot be used."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Self:
        """Open the store; `create` makes it where there is none."""
        return cls(path, open_database(path, create=create))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def begin(self, experiment: Experiment) -> None:
        """Put the experiment in; every process of a run says the same, and the first counts."""
        with self._writing():
            dataset = self._dataset(experiment.dataset)
            self._run(
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
        """Put a test in as it is if nothing more comes: an error. Another attempt replaces it."""
        with self._writing():
            self._run(
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
        """Link a test to its item, which is there once for each content; `item_id` is a new id."""
        with self._writing():
            (dataset,) = self._one("SELECT dataset_id FROM experiments WHERE uid = ?", uid)
            self._run(
                "INSERT OR IGNORE INTO items (id, dataset_id, hash, content) VALUES (?, ?, ?, ?)",
                item_id,
                dataset,
                content.hash,
                encode_canonical_json(content.fields()),
            )
            self._run(
                "UPDATE results SET item_id = (SELECT id FROM items WHERE dataset_id = ? "
                "AND hash = ?) WHERE experiment = ? AND nodeid = ?",
                dataset,
                content.hash,
                uid,
                nodeid,
            )

    def end(self, uid: str, result: ExperimentResult) -> None:
        """Write how a test ended: outcome, reason, scores, time."""
        with self._writing():
            self._run(
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
        """Say that the run has come to its end."""
        with self._writing():
            self._run("UPDATE experiments SET ended = ? WHERE uid = ?", ended, uid)

    def mark_sent(self, uid: str, sent: str) -> None:
        """Say that the server has it all."""
        with self._writing():
            self._run("UPDATE experiments SET sent = ? WHERE uid = ?", sent, uid)

    def claim(self, uid: str, sink: str) -> None:
        """Say that the experiment is meant for a server."""
        with self._writing():
            self._run("UPDATE experiments SET sink = ? WHERE uid = ?", sink, uid)

    def experiments(self) -> list[Experiment]:
        """Return all experiments, the latest first, with their counts."""
        with self._reading():
            rows = self._all(f"{_EXPERIMENTS} ORDER BY e.started DESC, e.uid DESC")
            counts: dict[str, dict[str, int]] = {}
            for uid, outcome, count in self._all(
                "SELECT experiment, outcome, COUNT(*) FROM results GROUP BY 1, 2 ORDER BY 1, 2"
            ):
                counts.setdefault(uid, {})[outcome] = count
        return [
            replace(_parse_experiment_row(row), outcomes=counts.get(row[0], {})) for row in rows
        ]

    def experiment(self, uid: str) -> Experiment | None:
        """Return one experiment by its whole id, if it is there."""
        return next((e for e in self.experiments() if e.uid == uid), None)

    def find_unsent(self, sink: str) -> list[Experiment]:
        """Return what is meant for a server and was not sent there, the oldest first."""
        return [e for e in reversed(self.experiments()) if e.sink == sink and e.sent is None]

    def results(self, uid: str) -> list[ExperimentResult]:
        """Return the results of an experiment, by node id."""
        with self._reading():
            return [_parse_result_row(row) for row in self._all(_RESULTS, uid)]

    def _dataset(self, name: str) -> int:
        self._run("INSERT OR IGNORE INTO datasets (name) VALUES (?)", name)
        number: int = self._one("SELECT id FROM datasets WHERE name = ?", name)[0]
        return number

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading(), open_transaction(self._connection):
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: the experiment store cannot be used ({error}); name another one"
            ) from None

    def _run(self, sql: str, *values: object) -> None:
        self._connection.execute(sql, values)

    def _all(self, sql: str, *values: object) -> list[Sequence[Any]]:
        return self._connection.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> Sequence[Any]:
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
