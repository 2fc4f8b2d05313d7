"""Rendering of experiments as terminal text and as JSON. Pure and deterministic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.opik.experiments.compare import ExperimentComparison, ResultChange
from ci_agent_eval.opik.experiments.records import Experiment, ExperimentResult

_OUTCOMES = {"passed": "passed", "failed": "failed", "error": "errored", "skipped": "skipped"}
_MARKS = {"passed": "PASSED ", "failed": "FAILED ", "error": "ERROR  ", "skipped": "SKIPPED"}


def render_experiments(experiments: Sequence[Experiment]) -> str:
    """Render a table of experiments, in the given order."""
    rows = [("EXPERIMENT", "DATA SET", "RESULTS", "COMMIT", "SERVER", "ID")]
    rows += [
        (
            make_printable(e.name),
            make_printable(e.dataset),
            format_outcomes(e.outcomes),
            make_printable((e.commit or "-")[:12]),
            _format_server(e),
            e.uid,
        )
        for e in experiments
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n" if experiments else "no experiments yet\n"


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return the number of results of each outcome, as text."""
    parts = [f"{outcomes[name]} {word}" for name, word in _OUTCOMES.items() if outcomes.get(name)]
    return ", ".join(parts) or "none"


def _format_server(experiment: Experiment) -> str:
    if experiment.sink is None:
        return "-"
    return f"{experiment.sink}: {'sent' if experiment.sent else 'not sent'}"


def render_experiment(experiment: Experiment, results: Iterable[ExperimentResult]) -> str:
    """Render one experiment: its settings, then each result."""
    return "\n".join([*_render_header(experiment), "", *_render_results(results)]).rstrip() + "\n"


def _render_header(experiment: Experiment) -> Iterator[str]:
    yield f"experiment  {make_printable(experiment.name)}"
    yield f"id          {experiment.uid}"
    yield f"data set    {make_printable(experiment.dataset)}"
    yield f"started     {experiment.started}"
    yield f"ended       {experiment.ended or 'not: the run did not come to its end'}"
    yield f"commit      {make_printable(experiment.commit or '-')}"
    yield f"server      {_format_server(experiment)}"
    yield f"results     {format_outcomes(experiment.outcomes)}"
    for name, value in sorted(experiment.settings.items()):
        yield f"setting     {make_printable(f'{name} = {_format_setting(value)}')}"


def _format_setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _render_results(results: Iterable[ExperimentResult]) -> Iterator[str]:
    for result in results:
        scores = "  ".join(
            f"{make_printable(s.name)} {_format_score(s.value)}" for s in result.scores
        )
        mark = _MARKS.get(result.outcome, make_printable(result.outcome))
        yield f"{mark} {make_printable(result.nodeid)}{f'  [{scores}]' if scores else ''}"
        if result.outcome != "passed" and result.reason:
            yield f"        {make_printable(result.reason.partition(chr(10))[0])}"


def render_comparison(comparison: ExperimentComparison) -> str:
    """Render the differences: regressions first, then improvements, then the rest."""
    return "\n".join(_render_changes(comparison)).rstrip() + "\n"


def _render_changes(comparison: ExperimentComparison) -> Iterator[str]:
    for word, experiment in (("base ", comparison.base), ("other", comparison.other)):
        outcomes = format_outcomes(experiment.outcomes)
        yield f"{word}  {make_printable(experiment.name)}: {outcomes}"
    yield ""
    named = {id(change) for change in (*comparison.worse, *comparison.better)}
    rest = [change for change in comparison.changes if id(change) not in named]
    for word, changes in (
        ("WORSE ", comparison.worse),
        ("BETTER", comparison.better),
        ("OTHER ", rest),
    ):
        for change in changes:
            yield f"{word} {_format_result_change(change)}"
    yield f"{comparison.unchanged} unchanged"
    for name, pair in comparison.means.items():
        yield f"mean {make_printable(name)}: {_format_change(*map(_format_optional_score, pair))}"


def _format_result_change(change: ResultChange) -> str:
    parts = []
    if change.before != change.after:
        parts.append(_format_change(change.before, change.after))
    parts += [
        f"{make_printable(name)} {_format_change(*map(_format_optional_score, pair))}"
        for name, pair in change.scores.items()
    ]
    return f"{make_printable(change.nodeid)}: {', '.join(parts)}"


def _format_change(before: str | None, after: str | None) -> str:
    return f"{before or 'not there'} -> {after or 'not there'}"


def _format_optional_score(value: float | None) -> str | None:
    return None if value is None else _format_score(value)


def _format_score(value: float) -> str:
    """Return a score with at most three decimal places."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def format_json(value: object) -> str:
    """Render a value as indented JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=True, indent=2, sort_keys=True) + "\n"


def encode_experiment(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment, without its results, as JSON."""
    return {
        "id": experiment.uid,
        "name": experiment.name,
        "dataset": experiment.dataset,
        "started": experiment.started,
        "ended": experiment.ended,
        "commit": experiment.commit,
        "settings": dict(experiment.settings),
        "sink": experiment.sink,
        "sent": experiment.sent,
        "outcomes": dict(experiment.outcomes),
    }


def encode_result(result: ExperimentResult) -> dict[str, Any]:
    """Return a result with its item as JSON."""
    return {
        "nodeid": result.nodeid,
        "outcome": result.outcome,
        "reason": result.reason,
        "scores": {score.name: score.value for score in result.scores},
        "attempts": result.attempts,
        "item": None if result.content is None else result.content.fields(),
        "item_id": result.item_id,
        "trace_id": result.trace_id,
        "started": result.started,
        "ended": result.ended,
    }


def encode_comparison(comparison: ExperimentComparison) -> dict[str, Any]:
    """Return a comparison as JSON."""
    return {
        "base": encode_experiment(comparison.base),
        "other": encode_experiment(comparison.other),
        "worse": [change.nodeid for change in comparison.worse],
        "better": [change.nodeid for change in comparison.better],
        "unchanged": comparison.unchanged,
        "means": {name: list(pair) for name, pair in comparison.means.items()},
        "changes": [
            {
                "nodeid": change.nodeid,
                "before": change.before,
                "after": change.after,
                "reason": change.reason,
                "scores": {name: list(pair) for name, pair in change.scores.items()},
            }
            for change in comparison.changes
        ],
    }
