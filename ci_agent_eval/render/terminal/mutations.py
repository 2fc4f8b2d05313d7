"""Changes of recorded episodes and whether the tests noticed them, as terminal text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import takewhile
from typing import Any

from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS
from ci_agent_eval.contract.mutations import (
    CoverageProblem,
    Mutation,
    MutationKind,
    MutationReport,
    MutationResult,
    MutationStatus,
    ScenarioMutations,
)
from ci_agent_eval.contract.wording import one_line, pluralize, shorten_text
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.numbers import format_share
from ci_agent_eval.render.terminal.layout import BOLD, DIM, GREEN, RED, YELLOW, TerminalStyle

_LONGEST = 60
"""Characters of an answer or an argument."""
_CONTEXT = 20
"""Characters of an answer before its change."""

_HEADINGS: dict[MutationStatus, tuple[str, str]] = {
    "unnoticed": ("no check notices", RED),
    "unjudged": ("only a judge could notice; none is asked", YELLOW),
    "warned": ("only a warning notices", YELLOW),
}
"""Heading and colour of each listed status."""

PROBLEMS: dict[CoverageProblem, str] = {
    "recording_failed": "its recorded episode did not pass",
    "not_played": "its test did not run: it was changed, or left out, after the recording",
    "own_agent": "its test asks its agent itself; only answers that @conversation, aitest_run or "
    "a simulation ask for are played",
    "asks_model": "its test itself asks a model, such as a judge, which is refused in playback",
    "other_answers": "its test asks for more or fewer answers than recorded; it depends on "
    "something that only its agent changes",
    "playback_failed": "its unchanged recording does not pass without its agent",
    "no_change": "its recording has nothing to change",
}


def render_mutations(report: MutationReport, *, style: TerminalStyle) -> str:
    """Return the unnoticed changes by scenario, the scenarios not covered, and the score."""
    return "".join(f"{line}\n" for line in _list_lines(report, style))


def _list_lines(report: MutationReport, style: TerminalStyle) -> Iterator[str]:
    counts = Counter(scenario.scenario_id for scenario in report.scenarios)
    shared = {scenario_id for scenario_id, count in counts.items() if count > 1}
    covered = [scenario for scenario in report.scenarios if scenario.problem is None]
    for scenario in covered:
        yield from _list_scenario_lines(scenario, shared, style)
    missing = [scenario for scenario in report.scenarios if scenario.problem is not None]
    if missing:
        yield style.paint(f"Not covered: {pluralize(len(missing), 'scenario')}", BOLD)
    for scenario in missing:
        yield f"  {_format_name(scenario, shared)}: {_describe_problem(scenario)}"
    if missing:
        yield ""
    yield _describe_score(report, len(covered))


def _format_name(scenario: ScenarioMutations, shared: Collection[str]) -> str:
    """Return the id, with the node id if variants or cases share it, as terminal text."""
    scenario_id, nodeid = scenario.scenario_id, scenario.nodeid
    if scenario_id not in shared:
        return escape_terminal(scenario_id)
    is_default = scenario_id.partition("[")[0] == nodeid.partition("[")[0]
    return escape_terminal(nodeid if is_default else f"{scenario_id} ({nodeid})")


def _list_scenario_lines(
    scenario: ScenarioMutations, shared: Collection[str], style: TerminalStyle
) -> Iterator[str]:
    noticed = len(scenario.list_results("noticed"))
    color = GREEN if noticed == len(scenario.results) else RED
    count = f"{noticed} of {pluralize(len(scenario.results), 'change')} noticed"
    yield f"{style.paint(_format_name(scenario, shared), BOLD)}  {style.paint(count, color)}"
    for status, (heading, status_color) in _HEADINGS.items():
        if results := scenario.list_results(status):
            yield f"  {style.paint(f'{heading}:', status_color)}"
            yield from (f"    {_describe_result(result)}" for result in results)
    if scenario.left_out:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(scenario.left_out.items()))
        yield style.paint(f"  left out, as there are too many places: {kinds}", DIM)
    yield ""


def _describe_result(result: MutationResult) -> str:
    text = describe_mutation(result.mutation)
    by = f" [{', '.join(result.noticed_by)}]" if result.noticed_by else ""
    return escape_terminal(f"{text}{by}")


def _describe_problem(scenario: ScenarioMutations) -> str:
    assert scenario.problem is not None  # noqa: S101 - only of these
    reason = f": {scenario.reason}" if scenario.reason else ""
    return escape_terminal(f"{PROBLEMS[scenario.problem]}{reason}")


def _describe_score(report: MutationReport, covered: int) -> str:
    counts = report.counts
    if report.score is None:
        return "Mutation score: none, no change was judged"
    noticed, judged = counts.noticed + counts.warned, counts.noticed + counts.warned
    judged += counts.unnoticed
    others = f"; {counts.unjudged} left to judges" if counts.unjudged else ""
    return (
        f"Mutation score: {format_share(report.score)} ({noticed} of "
        f"{pluralize(judged, 'change')} noticed in {covered} of "
        f"{pluralize(len(report.scenarios), 'scenario')}{others})"
    )


def describe_mutation(mutation: Mutation) -> str:
    """Return a sentence about a change; its parts are text of the episode."""
    return f"{mutation.kind}: {_SENTENCES[mutation.kind](mutation)}"


def _format_call(mutation: Mutation) -> str:
    return f"call {mutation.call}, {mutation.tool}"


def _format_value(value: Any) -> str:
    return shorten_text(json.dumps(value, ensure_ascii=False), _LONGEST)


def _describe_argument(mutation: Mutation) -> str:
    change = f"{_format_value(mutation.before)} → {_format_value(mutation.after)}"
    return f"{_format_call(mutation)}, is made with {mutation.argument} {change}"


def _describe_answer(mutation: Mutation) -> str:
    before, after = one_line(str(mutation.before)), one_line(str(mutation.after))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    start = max(sum(1 for _ in same) - _CONTEXT, 0)
    return f"answer {mutation.answer}: {_cut(before, start)} becomes {_cut(after, start)}"


def _cut(text: str, start: int) -> str:
    """Return a text from a little before its change on."""
    return f'"{"…" if start else ""}{shorten_text(text[start:], _LONGEST)}"'


def _describe_budget(mutation: Mutation) -> str:
    labels = {kind.name: kind.label for kind in BUDGET_KINDS}
    return f"ten times the {labels.get(mutation.budget or '', mutation.budget)}"


_SENTENCES: dict[MutationKind, Callable[[Mutation], str]] = {
    "drop_call": lambda m: f"{_format_call(m)}, is not made",
    "repeat_call": lambda m: f"{_format_call(m)}, is made twice",
    "reorder_calls": lambda m: f"{_format_call(m)}, is made after {m.other}",
    "change_argument": _describe_argument,
    "skip_confirmation": lambda m: (
        f"{_format_call(m)}, is made in answer {m.answer}, before the user agrees"
    ),
    "contradict_answer": _describe_answer,
    "truncate_answer": _describe_answer,
    "leak_secret": lambda m: f"answer {m.answer} ends with a made-up API key",
    "swap_answers": lambda m: f"answer {m.answer} is that of {m.other!r}",
    "exceed_budget": _describe_budget,
}
