"""Agents and models of a run against its scenarios: passed of judged iterations in each pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, LoadedResults, OutcomeTally
from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.numbers import ABSENT, format_part

MOST_COLUMNS = 12
"""More do not fit beside each other; the others are counted."""


def build_matrices(
    episodes: Sequence[EpisodeRecord], names: Mapping[str, int], texts: PageText
) -> list[dict[str, Any]]:
    """Return a matrix for agents and one for models, each if there are several.

    `names` are the ids of the page's scenarios, each with the index of one of its rows.
    """
    models = [replace(record, agent=_join_names(record)) for record in episodes]
    found = (
        ("agent", _tally(episodes, lambda agent: agent)),
        ("model", _tally(models, lambda both: json.loads(both)[1])),
    )
    matrices = (_build_matrix(kind, tallies, names, texts) for kind, tallies in found)
    return [matrix for matrix in matrices if len(matrix["columns"]) > 1]


def _join_names(record: EpisodeRecord) -> str:
    """Return agent and model as one name: iterations of two agents may have equal numbers."""
    return json.dumps([record.agent, record.model])


def _tally(
    episodes: Sequence[EpisodeRecord], get_column: Callable[[str], str | None]
) -> dict[str, dict[str, OutcomeTally]]:
    """Return the tally of the iterations of each scenario and column."""
    loaded = LoadedResults(episodes=tuple(episodes))
    found: dict[str, dict[str, OutcomeTally]] = {}
    for scenario in summarize_results(loaded, budgets=SuiteBudgets()).scenarios:
        row = found.setdefault(scenario.scenario_id, {})
        column = get_column(scenario.agent) if scenario.agent else None
        if column:
            row[column] = row.get(column, OutcomeTally()) + scenario.tally
    return found


def _build_matrix(
    kind: str,
    tallies: Mapping[str, Mapping[str, OutcomeTally]],
    names: Mapping[str, int],
    texts: PageText,
) -> dict[str, Any]:
    columns = sorted({column for row in tallies.values() for column in row})
    shown = columns[:MOST_COLUMNS]
    rows = [(number, tallies[name]) for name, number in names.items() if name in tallies]
    return {
        "kind": kind,
        "columns": [texts.name(column) for column in shown],
        "more": len(columns) - len(shown),
        "rows": [[number, *(_build_cell(row.get(name)) for name in shown)] for number, row in rows],
    }


def _build_cell(tally: OutcomeTally | None) -> list[str] | None:
    """Return passed of judged iterations, and the word for them; None: it did not run."""
    if tally is None:
        return None
    if not tally.judged:
        return [ABSENT, "not judged"]
    word = "failed" if not tally.passed else "passed" if tally.failed == 0 else "mixed"
    return [format_part(tally.passed, tally.judged), word]
