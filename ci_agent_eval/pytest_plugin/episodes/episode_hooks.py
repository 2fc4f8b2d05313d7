"""The hooks that other plugins implement, called for each ended episode.

They are called at its teardown, on the main thread of the process that ran it. A hook that fails
makes the episode an error: a value or a copy that is missing somewhere would not be noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.jsonable import clean_text, describe_error
from ci_agent_eval.contract.plugin_columns import (
    MAX_COLUMNS,
    MAX_NAME,
    MAX_TEXT,
    ColumnValue,
    check_column_name,
    check_column_value,
)
from ci_agent_eval.pytest_plugin.episodes.ended_episode import end_in_error
from ci_agent_eval.pytest_plugin.episodes.endings import shorten_message

_ERRORS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def call_episode_hooks(
    item: pytest.Item,
    report: pytest.TestReport,
    episode: Episode,
    redact: Callable[[Episode], Episode],
) -> Episode | None:
    """Call the hooks with the redacted episode; return the changed episode, or None.

    A failing hook also fails the report of the teardown.
    """
    columns_hook, episode_hook = (
        item.ihook.pytest_agent_eval_columns,
        item.ihook.pytest_agent_eval_episode,
    )
    ended = episode
    try:
        # Redacting takes time, and most projects have none of the hooks.
        if columns_hook.get_hookimpls():
            found = columns_hook(item=item, episode=redact(ended))
            columns = _merge_columns(ended.columns, found)
            # The conversation is left out, so that it is not redacted again.
            added = ended.model_copy(update={"columns": columns, "trajectory": None})
            # A secret that is cut is not recognized any more.
            short = {name: _cut_value(value) for name, value in redact(added).columns.items()}
            ended = ended.model_copy(update={"columns": short})
    except pytest.exit.Exception:
        raise
    except _ERRORS as error:
        ended = _note_failure(report, ended, "pytest_agent_eval_columns", error)
    try:
        if episode_hook.get_hookimpls():
            episode_hook(item=item, episode=redact(ended))
    except pytest.exit.Exception:
        raise
    except _ERRORS as error:
        ended = _note_failure(report, ended, "pytest_agent_eval_episode", error)
    return None if ended is episode else ended


def _merge_columns(own: Mapping[str, ColumnValue], found: Iterable[Any]) -> dict[str, ColumnValue]:
    """Add the results of all implementations to the episode's own columns.

    Raises ValueError for an invalid one.
    """
    columns = dict(own)
    for given in found:
        if not isinstance(given, Mapping):
            raise ValueError(f"it returned a {type(given).__name__}, not a mapping")  # noqa: TRY004 - described as one problem
        for key, value in given.items():
            name = _check_name(key)
            if name in columns:
                raise ValueError(f"the column {name!r} is returned twice; rename one")
            try:
                columns[name] = check_column_value(value)
            except ValueError as error:
                raise ValueError(f"the column {name!r} {error}") from None
    if len(columns) > MAX_COLUMNS:
        raise ValueError(f"there are {len(columns)} columns; return at most {MAX_COLUMNS}")
    return columns


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"the name {name!r} is not a text of 1 to {MAX_NAME} characters")
    try:
        return check_column_name(clean_text(name))
    except ValueError as error:
        raise ValueError(f"the name {name!r} {error}") from None


def _cut_value(value: ColumnValue) -> ColumnValue:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _note_failure(
    report: pytest.TestReport, episode: Episode, hook: str, error: BaseException
) -> Episode:
    """Fail the report of the teardown, and return the episode as an error."""
    failed = f"the hook {hook} failed{_find_place(error)}"
    problem = f"{failed}: {shorten_message(describe_error(error))}; correct it"
    if report.passed:
        report.outcome = "failed"
        report.longrepr = problem
    else:
        report.sections.append(("agent-eval", problem))
    return end_in_error(episode, problem)


def _find_place(error: BaseException) -> str:
    """Return the place of the hook's implementation, as ` (conftest.py:3)`."""
    for frame in extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.parent.name != "pluggy" and frame.filename != __file__:
            return f" ({path.name}:{frame.lineno})"
    return ""
