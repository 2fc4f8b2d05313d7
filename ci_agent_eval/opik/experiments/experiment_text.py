"""Experiments as text for a terminal, and as JSON. Pure: the same store gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.opik.experiments.compare import Change, Comparison
from ci_agent_eval.opik.experiments.records import Experiment, Result

_OUTCOMES = {"passed": "passed", "failed": "failed", "error": "errored", "skipped": "skipped"}
_MARKS = {"passed": "PASSED ", "failed": "FAILED ", "error": "ERROR  ", "skipped": "SKIPPED"}


def render_list(experiments: Sequence[Experiment]) -> str:
    """Render a table of experiments, in their order."""
    rows = [("EXPERIMENT", "DATA SET", "RESULTS", "COMMIT", "SERVER", "ID")]
    rows += [
        (
            printable(e.name),
            printable(e.dataset),
            counted(e.outcomes),
            printable((e.commit or "-")[:12]),
            _server(e),
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


def counted(outcomes: Mapping[str, int]) -> str:
    """Return how many results there are of each outcome."""
    parts = [f"{outcomes[name]} {word}" for name, word in _OUTCOMES.items() if outcomes.get(name)]
    return ", ".join(parts) or "none"


def _server(experiment: Experiment) -> str:
    if experiment.sink is None:
        return "-"
    return f"{experiment.sink}: {'sent' if experiment.sent else 'not sent'}"


def render_experiment(experiment: Experiment, results: Iterable[Result]) -> str:
    """Render one experiment: what it ran under, then each result."""
    return "\n".join([*_head(experiment), "", *_result_lines(results)]).rstrip() + "\n"


def _head(experiment: Experiment) -> Iterator[str]:
    yield f"experiment  {printable(experiment.name)}"
    yield f"id          {experiment.uid}"
    yield f"data set    {printable(experiment.dataset)}"
    yield f"started     {experiment.started}"
    yield f"ended       {experiment.ended or 'not: the run did not come to its end'}"
    yield f"commit      {printable(experiment.commit or '-')}"
    yield f"server      {_server(experiment)}"
    yield f"results     {counted(experiment.outcomes)}"
    for name, value in sorted(experiment.settings.items()):
        yield f"setting     {printable(f'{name} = {_value(value)}')}"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _result_lines(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        scores = "  ".join(f"{printable(s.name)} {number(s.value)}" for s in result.scores)
        mark = _MARKS.get(result.outcome, printable(result.outcome))
        yield f"{mark} {printable(result.nodeid)}{f'  [{scores}]' if scores else ''}"
        if result.outcome != "passed" and result.reason:
            yield f"        {printable(result.reason.partition(chr(10))[0])}"


def render_comparison(comparison: Comparison) -> str:
    """Render what differs: first what got worse, then better, then the rest."""
    return "\n".join(_comparison_lines(comparison)).rstrip() + "\n"


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    for word, experiment in (("base ", comparison.base), ("other", comparison.other)):
        yield f"{word}  {printable(experiment.name)}: {counted(experiment.outcomes)}"
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
        yield f"mean {printable(name)}: {_arrow(*map(_number_or_none, pair))}"


def _change_line(change: Change) -> str:
    parts = []
    if change.before != change.after:
        parts.append(_arrow(change.before, change.after))
    parts += [
        f"{printable(name)} {_arrow(*map(_number_or_none, pair))}"
        for name, pair in change.scores.items()
    ]
    return f"{printable(change.nodeid)}: {', '.join(parts)}"


def _arrow(before: str | None, after: str | None) -> str:
    return f"{before or 'not there'} -> {after or 'not there'}"


def _number_or_none(value: float | None) -> str | None:
    return None if value is None else number(value)


def number(value: float) -> str:
    """Return a score as people write it: at most three places."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def printable(text: str) -> str:
    """Replace control characters: what tests are called must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def render_json(value: object) -> str:
    """Render what `experiment_json` and its like return."""
    return json.dumps(value, ensure_ascii=True, indent=2, sort_keys=True) + "\n"


def experiment_json(experiment: Experiment) -> dict[str, Any]:
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


def result_json(result: Result) -> dict[str, Any]:
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


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON."""
    return {
        "base": experiment_json(comparison.base),
        "other": experiment_json(comparison.other),
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
