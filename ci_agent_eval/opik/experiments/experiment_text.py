"""Experiments as text for a terminal, and as JSON. Pure: the same store gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.opik.experiments.compare import ExperimentComparison, ResultChange
from ci_agent_eval.opik.experiments.records import Experiment, ExperimentResult

_OUTCOMES = {"passed": "passed", "failed": "failed", "error": "errored", "skipped": "skipped"}
_MARKS = {"passed": "PASSED ", "failed": "FAILED ", "error": "ERROR  ", "skipped": "SKIPPED"}


def render_experiments(experiments: Sequence[Experiment]) -> str:
    """Render a table of experiments, in their order."""
    rows = [("EXPERIMENT", "DATA SET", "RESULTS", "COMMIT", "SERVER", "ID")]
    rows += [
        (
            replace_control_characters(e.name),
            replace_control_characters(e.dataset),
            format_outcomes(e.outcomes),
            replace_control_characters((e.commit or "-")[:12]),
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
    """Return how many results there are of each outcome."""
    parts = [f"{outcomes[name]} {word}" for name, word in _OUTCOMES.items() if outcomes.get(name)]
    return ", ".join(parts) or "none"


def _format_server(experiment: Experiment) -> str:
    if experiment.sink is None:
        return "-"
    return f"{experiment.sink}: {'sent' if experiment.sent else 'not sent'}"


def render_experiment(experiment: Experiment, results: Iterable[ExperimentResult]) -> str:
    """Render one experiment: what it ran under, then each result."""
    return "\n".join([*_header_lines(experiment), "", *_result_lines(results)]).rstrip() + "\n"


def _header_lines(experiment: Experiment) -> Iterator[str]:
    yield f"experiment  {replace_control_characters(experiment.name)}"
    yield f"id          {experiment.uid}"
    yield f"data set    {replace_control_characters(experiment.dataset)}"
    yield f"started     {experiment.started}"
    yield f"ended       {experiment.ended or 'not: the run did not come to its end'}"
    yield f"commit      {replace_control_characters(experiment.commit or '-')}"
    yield f"server      {_format_server(experiment)}"
    yield f"results     {format_outcomes(experiment.outcomes)}"
    for name, value in sorted(experiment.settings.items()):
        yield f"setting     {replace_control_characters(f'{name} = {_format_setting(value)}')}"


def _format_setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _result_lines(results: Iterable[ExperimentResult]) -> Iterator[str]:
    for result in results:
        scores = "  ".join(
            f"{replace_control_characters(s.name)} {format_score(s.value)}" for s in result.scores
        )
        mark = _MARKS.get(result.outcome, replace_control_characters(result.outcome))
        yield f"{mark} {replace_control_characters(result.nodeid)}{f'  [{scores}]' if scores else ''}"
        if result.outcome != "passed" and result.reason:
            yield f"        {replace_control_characters(result.reason.partition(chr(10))[0])}"


def render_comparison(comparison: ExperimentComparison) -> str:
    """Render what differs: first what got worse, then better, then the rest."""
    return "\n".join(_comparison_lines(comparison)).rstrip() + "\n"


def _comparison_lines(comparison: ExperimentComparison) -> Iterator[str]:
    for word, experiment in (("base ", comparison.base), ("other", comparison.other)):
        yield f"{word}  {replace_control_characters(experiment.name)}: {format_outcomes(experiment.outcomes)}"
    yield ""
    named = {id(change) for change in (*comparison.worse, *comparison.better)}
    rest = [change for change in comparison.changes if id(change) not in named]
    for word, changes in (
        ("WORSE ", comparison.worse),
        ("BETTER", comparison.better),
        ("OTHER ", rest),
    ):
        for change in changes:
            yield f"{word} {_change_line(change)}"
    yield f"{comparison.unchanged} unchanged"
    for name, pair in comparison.means.items():
        yield f"mean {replace_control_characters(name)}: {_format_change(*map(_format_optional_score, pair))}"


def _change_line(change: ResultChange) -> str:
    parts = []
    if change.before != change.after:
        parts.append(_format_change(change.before, change.after))
    parts += [
        f"{replace_control_characters(name)} {_format_change(*map(_format_optional_score, pair))}"
        for name, pair in change.scores.items()
    ]
    return f"{replace_control_characters(change.nodeid)}: {', '.join(parts)}"


def _format_change(before: str | None, after: str | None) -> str:
    return f"{before or 'not there'} -> {after or 'not there'}"


def _format_optional_score(value: float | None) -> str | None:
    return None if value is None else format_score(value)


def format_score(value: float) -> str:
    """Return a score as people write it: at most three places."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def replace_control_characters(text: str) -> str:
    """Replace control characters: what tests are called must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def format_json(value: object) -> str:
    """Render what `experiment_json` and its like return."""
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
