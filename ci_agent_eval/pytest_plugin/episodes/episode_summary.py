"""Short forms of an episode: JUnit properties, and plain data for the terminal summary."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from ci_agent_eval.contract.budgets import Budget
from ci_agent_eval.contract.episode import Assertion, Episode, describe_violation
from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.trajectory import ToolCall, Turn
from ci_agent_eval.contract.wording import (
    format_column,
    make_lines_printable,
    replace_varying_parts,
    shorten_text,
    split_place,
    summarize_reason,
)
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import iterations
from ci_agent_eval.pytest_plugin.collection.detection import NAME, owns_marker

PREFIX = "agent_eval."
"""Prefix of all our JUnit properties."""


def list_junit_properties(episode: Episode) -> Iterator[tuple[str, str]]:
    """Yield the properties of the episode's test case."""
    yield f"{PREFIX}nodeid", episode.nodeid or ""
    yield f"{PREFIX}scenario_id", episode.scenario_id
    yield f"{PREFIX}outcome", episode.outcome
    yield f"{PREFIX}gate", episode.gate
    for name, budget in episode.budgets.iter_named():
        yield f"{PREFIX}budget.{name}", _format_budget(budget)


def is_result_property(name: str) -> bool:
    """Return whether a property describes the episode's result and not its identity."""
    return name.startswith(PREFIX) and name != f"{PREFIX}nodeid"


def _format_budget(budget: Budget) -> str:
    used = "not measured" if budget.used is None else _format_number(budget.used)
    return f"{used}/{_format_number(budget.limit)}"


def _format_number(figure: float) -> str:
    return str(int(figure)) if float(figure).is_integer() else repr(figure)


def build_summary_record(episode: Episode) -> dict[str, Any]:
    """Return the data of the terminal summary, in a form that xdist can send."""
    return {
        "key": list(episode.key),
        "scenario_id": episode.scenario_id,
        "agent": episode.agent,
        "outcome": episode.outcome,
        "reason": episode.reason,
        "failed": [_format_assertion(assertion) for assertion in episode.failed_assertions],
        "violations": [describe_violation(v) for v in episode.violations],
        "cost_usd": _get_agent_cost(episode),
        "is_unseen": episode.is_unseen,
        "judge_cost_usd": episode.judge.cost_usd if episode.judge else None,
        "user_cost_usd": episode.simulated_user.cost_usd if episode.simulated_user else None,
        "failure": build_failure_details(episode),
        "evaluation": _dump_evaluation(episode) if episode.mode == "evaluation" else None,
    }


_EVALUATION_FIELDS = {"scenario_id", "nodeid", "iteration", "attempt", "mode", "outcome", "reason"}


def _dump_evaluation(episode: Episode) -> dict[str, Any]:
    """Return the data of the evaluation report; it is small without the trajectory."""
    return episode.model_dump(
        mode="json",
        include={*_EVALUATION_FIELDS, "assertions", "columns", "duration_ms"},
        exclude_defaults=True,
    ) | {"outcome": episode.outcome}


def _format_assertion(assertion: Assertion) -> str:
    return (
        f"{assertion.name} ({assertion.file}:{assertion.line})"
        if assertion.file
        else assertion.name
    )


def _get_agent_cost(episode: Episode) -> float | None:
    cost = episode.trajectory.cost_usd if episode.trajectory else None
    budget = episode.budgets.cost_usd
    return cost if cost is not None or budget is None else budget.used


_MAX_NAMES = 3
"""Maximum number of tests that a note names."""


def list_notes(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    """Yield a sentence for each kind of marker that has no effect, and on what runs alone."""
    yield from _note_unrepeated(items, default)
    yield from _note_foreign_markers(items)
    if options.get_concurrency(items[0].config) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.eligibility import (  # noqa: PLC0415 - inert until used
            build_alone_notes,
        )

        yield from build_alone_notes(items)


def _note_unrepeated(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    found = sorted(item.nodeid for item in iterations.find_unrepeated_episodes(items, default))
    if found:
        yield (
            f"run once, not repeated: {_join_names(found)}; pytest repeats neither methods "
            "of unittest.TestCase nor what is marked after collection"
        )


def _note_foreign_markers(items: Sequence[pytest.Item]) -> Iterator[str]:
    marked = [item for item in items if item.get_closest_marker(NAME) is not None]
    ignored = sorted(item.nodeid for item in marked if not owns_marker(item))
    if ignored:
        yield (
            f"the marker `{NAME}` of {_join_names(ignored)} is ignored, for pytest's "
            "setting `markers` names it as the project's own; take it out of there"
        )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"


MAX_TEXT = 2_000
"""Characters of a message that are sent to the terminal's process."""
MAX_CALLS = 4
MAX_ARGUMENTS = 80

FailureDetails = Mapping[str, Any]
"""`user`, `answer`, `calls` (texts), `check`, `reason`, `place`, `columns`, `cause`, `length`."""


def build_failure_details(episode: Episode) -> FailureDetails | None:
    """Return the details of an episode that failed its test, else None.

    It failed, ended in an error, or passed over a hard budget.
    """
    overruns = [describe_violation(found) for found in episode.violations if found.hard]
    is_over = episode.outcome == "passed" and bool(overruns)
    if not is_over and episode.outcome not in {"failed", "error"}:
        return None
    failed = next(iter(episode.failed_assertions), None)
    name, reason, place = "", episode.reason or "", ""
    if failed is not None:
        name, reason, place = failed.name, failed.reason or "", _format_place(failed)
    elif is_over:
        reason = "; ".join(overruns)
    else:
        reason, file, line = split_place(reason)
        place = f"{file}:{line}" if file else ""
    turns = episode.trajectory.turns if episode.trajectory is not None else ()
    answered = [place for place, turn in enumerate(turns) if turn.role == "assistant"]
    exchange = turns[_find_question(turns, answered[-1]) : answered[-1] + 1] if answered else ()
    calls = [call for turn in exchange for call in turn.tool_calls]
    return {
        "user": _cut(next((t.content for t in exchange if t.role == "user"), "")),
        "answer": _cut(exchange[-1].content) if exchange else None,
        "calls": [format_call(call) for call in calls[:MAX_CALLS]],
        "more_calls": max(0, len(calls) - MAX_CALLS),
        "check": name,
        "reason": _cut(summarize_reason(reason)),
        "place": place or _format_place(episode),
        "columns": " · ".join(f"{n} {format_column(v)}" for n, v in episode.columns.items()),
        "cause": replace_varying_parts(name or reason),
        "length": sum(len(turn.content) for turn in turns),
    }


def _format_place(found: Assertion | Episode) -> str:
    return f"{found.file}:{found.line}" if found.file and found.line else found.file or ""


def _find_question(turns: tuple[Turn, ...], answer: int) -> int:
    """Return the position of the user's message that an answer belongs to."""
    asked = [place for place in range(answer) if turns[place].role == "user"]
    return asked[-1] if asked else answer


def format_call(call: ToolCall) -> str:
    """Return a tool call on one line, with its arguments cut."""
    arguments = call.arguments
    if isinstance(arguments, dict):
        shown = ", ".join(f"{name}={_format_json(value)}" for name, value in arguments.items())
    else:
        shown = "" if arguments is None else _format_json(arguments)
    failed = f" failed: {shorten_text(call.error, MAX_ARGUMENTS)}" if call.error else ""
    return f"{call.name}({shorten_text(shown, MAX_ARGUMENTS)}){failed}"


def _format_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def make_failure_printable(report: pytest.TestReport, *, has_colors: bool) -> None:
    """Replace control characters and workflow commands in a failure's message and traceback.

    pytest prints both as they are, and they may contain what an agent said. `has_colors`: pytest
    colours them.
    """
    convert = partial(make_lines_printable, has_colors=has_colors)
    report.longrepr = _convert_texts(report.longrepr, convert)


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact every text of a report that is shown or written."""
    report.longrepr = _convert_texts(report.longrepr, redact)
    report.sections = [(name, redact(text)) for name, text in report.sections]
    report.user_properties = [
        (name, _convert_texts(value, redact)) for name, value in report.user_properties
    ]


def _convert_texts(value: Any, convert: Callable[[str], str]) -> Any:
    """Return a value with its texts converted; pytest's own representations are copied."""
    if isinstance(value, str):
        return convert(value)
    if isinstance(value, list | tuple):
        return type(value)([_convert_texts(item, convert) for item in value])
    # pytest's tracebacks are trees of these objects, which the terminal, xdist and JUnit each
    # read differently, so their structure must stay.
    if not hasattr(value, "toterminal") or not hasattr(value, "__dict__"):
        return value
    found = copy.copy(value)
    for name, item in vars(value).items():
        object.__setattr__(found, name, _convert_texts(item, convert))
    return found
