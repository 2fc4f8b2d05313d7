"""Read `confirmation.json`, which a run leaves beside its results.

It counts only as a whole, and only for the results that it was made for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import (
    ConfirmationRuns,
    EpisodeRecord,
    build_episode_record,
)
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.results import Confirmation, ConfirmationRun, Session, Side
from ci_agent_eval.results.episodes import ReadingRules
from ci_agent_eval.results.json_text import parse_json
from ci_agent_eval.storage.regular_file import open_regular

MAX_BYTES = 512 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_ORDINARY = (0, 1)
"""pytest's exit statuses after all tests ran."""


def read_confirmation(
    path: Path, results: Path | None, session: Session | None, rules: ReadingRules
) -> ConfirmationRuns | str:
    """Return the runs of a confirmation, or the reason why it does not count.

    `results` and `session` are the run that it should belong to.
    """
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES + 1)
        found = Confirmation.model_validate(rules.redact(parse_json(text)))
        digest = None if results is None else hash_file(results)
    except ValueError as error:  # includes pydantic's ValidationError
        return f"it cannot be read: {describe_validation_error(error)[:300]}"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    problem = next(_list_problems(found, digest, session), None)
    return problem or _build_runs(found)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with open_regular(path, follow=True) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _list_problems(
    found: Confirmation, digest: str | None, session: Session | None
) -> Iterator[str]:
    if session is None or digest != found.results:
        yield "it belongs to other results than those beside it"
    elif found.suite != session.suite:
        yield "it belongs to another suite"
    elif found.commit != session.commit:
        yield "it is about another commit"
    if found.ended is not None:
        yield found.ended
    expected = [(block, side) for block in range(1, found.blocks + 1) for side in ("base", "head")]
    if sorted((run.block, run.side) for run in found.runs) != expected:
        yield f"it does not have one run of each side in {found.blocks} blocks"
    for run in found.runs:
        commit = found.base_commit if run.side == "base" else found.commit
        if (run.session.suite, run.session.commit) != (found.suite, commit):
            yield f"block {run.block}, {run.side}: it belongs to another suite or commit"
        if (problem := find_run_problem(run)) is not None:
            yield problem


def find_run_problem(run: ConfirmationRun) -> str | None:
    """Return why a run cannot be compared, or None."""
    session, name = run.session, f"block {run.block}, {run.side}"
    if session.collection_errors:
        return f"{name}: pytest could not collect {session.collection_errors[0].nodeid}"
    if session.selected == 0:
        return f"{name}: none of the scenarios is there"
    if session.suite_stop is not None:
        return f"{name}: {session.suite_stop.sentence}"
    if session.state != "finished" or session.stopped or session.process_status not in _ORDINARY:
        return f"{name}: it did not run to its end"
    if session.process_status != session.exit_status:
        return f"{name}: pytest ended otherwise than its session says"
    iterations = {episode.key[:3] for episode in run.episodes}
    return None if session.selected == len(iterations) else f"{name}: episodes are missing"


def _build_runs(found: Confirmation) -> ConfirmationRuns:
    return ConfirmationRuns(
        base=_merge_blocks(found, "base"),
        head=_merge_blocks(found, "head"),
        planned={s.scenario_id: s.iterations * found.blocks for s in found.scenarios},
    )


def _merge_blocks(found: Confirmation, side: Side) -> tuple[EpisodeRecord, ...]:
    """Return a side's episodes as one run; each block continues the iterations."""
    size = max((episode.iteration for run in found.runs for episode in run.episodes), default=0)
    records = [
        record._replace(iteration=record.iteration + (run.block - 1) * size)
        for run in found.runs
        if run.side == side
        for record in map(build_episode_record, run.episodes)
    ]
    return tuple(sorted(records, key=lambda r: (r.scenario_id, r.nodeid or "", r.iteration)))
