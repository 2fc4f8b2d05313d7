"""A section of the Markdown report, and the cells that its tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ci_agent_eval.gate import Judgement
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import (
    TableColumn,
    render_details,
    render_list,
    render_place,
    render_table,
)
from ci_agent_eval.render.numbers import ABSENT, format_count, format_percent
from ci_agent_eval.render.scenario_name import NO_AGENT, ScenarioName
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow

T = TypeVar("T")

NOUNS: dict[str, tuple[str, str]] = {
    "figures": ("figure", "figures"),
    "failing": ("failing scenario", "failing scenarios"),
    "baseline": ("line against the baseline", "lines against the baseline"),
    "tests": ("failing test", "failing tests"),
    "errors": ("scenario with errors", "scenarios with errors"),
    "skipped": ("skipped scenario", "skipped scenarios"),
    "manifest": ("difference from the known scenarios", "differences from the known scenarios"),
    "overruns": ("line of budgets", "lines of budgets"),
    "findings": ("finding", "findings"),
    "changed_diffs": ("trajectory that changed", "trajectories that changed"),
    "diverging": ("scenario with other tool calls", "scenarios with other tool calls"),
    "changes": ("change since the baseline", "changes since the baseline"),
    "assertions": ("failing assertion", "failing assertions"),
    "outputs": ("output of a test", "outputs of tests"),
    "evaluations": ("conversation", "conversations"),
    "measured": ("failing assertion of evaluations", "failing assertions of evaluations"),
    "advisory": ("failing advisory scenario", "failing advisory scenarios"),
    "quarantined": ("scenario in quarantine", "scenarios in quarantine"),
    "acknowledged": ("acknowledgement", "acknowledgements"),
    "warnings": ("warning", "warnings"),
    "flaky": ("flaky scenario or test", "flaky scenarios or tests"),
    "passing": ("passing scenario", "passing scenarios"),
    "iterations": ("scenario in iterations", "scenarios in iterations"),
    "trend": ("run of the trend", "runs of the trend"),
    "sources": ("result file", "result files"),
}
"""The name of one line of each section, and of several."""

NAMES = tuple(NOUNS)

ID_LIMIT: Final = 120
REASON_LIMIT: Final = 300
WHOLE_REASON_LIMIT: Final = 1_000
OUTPUT_LIMIT: Final = 2_000

SCENARIO: Final = TableColumn("scenario")
WHERE: Final = TableColumn("where")


@dataclass(frozen=True, slots=True)
class SectionBody:
    """The content of a section."""

    total: int
    """The number of lines."""
    write: Callable[[int], str]
    """Renders the first lines, at least one."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report that can be shortened to its first lines, or left out."""

    name: str
    title: str
    body: SectionBody
    is_open: bool = False
    """Whether it is not collapsed where the gate failed."""
    most: int | None = None
    """The most lines that are shown; None: all."""

    @property
    def total(self) -> int:
        """The number of lines."""
        return self.body.total

    def render(self, lines: int, *, is_open: bool, whole: str) -> str:
        """Return the section with at most `lines` lines, and the number of the others.

        `whole` is the pointer to all of them.
        """
        shown = min(lines, self.total, self.total if self.most is None else self.most)
        if not shown:
            return ""
        body = self.body.write(shown)
        if rest := self.total - shown:
            body = f"{body}\n\nand {format_count(rest)} more; {whole}"
        if self.name == "figures":
            return body
        return f"**{self.title}**\n\n{body}" if is_open else render_details(self.title, body)


def table_body(
    columns: Sequence[TableColumn], found: Sequence[T], row: Callable[[T], Sequence[str]]
) -> SectionBody:
    """Return a body that is a table with a row for each."""
    return SectionBody(
        len(found), lambda lines: render_table(columns, [row(item) for item in found[:lines]])
    )


def list_body(found: Sequence[T], line: Callable[[T], str]) -> SectionBody:
    """Return a body that is a list with a line for each."""
    return SectionBody(len(found), lambda lines: render_list(line(item) for item in found[:lines]))


def blocks_body(found: Sequence[T], block: Callable[[T], str]) -> SectionBody:
    """Return a body of paragraphs, one or more for each."""
    return SectionBody(len(found), lambda lines: "\n\n".join(block(item) for item in found[:lines]))


def failing_table(found: Sequence[ScenarioRow]) -> SectionBody:
    """Return a body that is a table of failing scenarios and the first cause of each."""
    rated = are_rated(found)
    columns = (
        SCENARIO,
        *passes_columns(rated=rated),
        TableColumn("first failing assertion"),
        WHERE,
    )
    return table_body(columns, found, lambda row: _failing_row(row, rated=rated))


def _failing_row(row: ScenarioRow, *, rated: bool) -> Sequence[str]:
    return (
        render_scenario(row) + (f" ({row.note})" if row.note else ""),
        *passes_cells(row, rated=rated),
        render_cause(row.first_cause, REASON_LIMIT, cell=True),
        render_place(row.first_cause.place, cell=True),
    )


def are_rated(found: Iterable[ScenarioRow]) -> bool:
    """Say whether any of the scenarios has a pass rate to show."""
    return any(row.is_rated for row in found)


def passes_columns(*, rated: bool) -> Sequence[TableColumn]:
    """Return the columns of passes, and of the pass rate where there is one to show."""
    columns = (TableColumn("passes", figures=True), TableColumn("pass rate", figures=True))
    return columns if rated else columns[:1]


def passes_cells(row: ScenarioRow, *, rated: bool, note: str = "") -> Sequence[str]:
    """Return passed of judged iterations, with the requirement unless it is all, and the rate."""
    required = ", ".join(_list_requirements(row.judgement))
    passes = f"{row.passes} ({required} required)" if required else row.passes
    return (passes + note, row.pass_rate.text) if rated else (passes + note,)


def _list_requirements(judgement: Judgement) -> Iterator[str]:
    passes, rate = judgement.required_passes, judgement.required_pass_rate
    if passes is not None:
        yield format_count(passes)
    # Passes stand in place of a rate, which is then nothing at all.
    if rate != 1 and not (passes is not None and rate == 0):
        yield format_percent(rate)


def render_scenario(row: ScenarioRow, *, cell: bool = True) -> str:
    """Return the scenario's name with the remarks about it."""
    return " ".join((render_name(row.name, cell=cell), *(f"({text})" for text in row.remarks)))


def render_name(name: ScenarioName | None, *, cell: bool = False) -> str:
    """Return a scenario's id and agent, each in code; None is the suite."""
    if name is None:
        return "the whole suite"
    shown = code_span(name.scenario_id, limit=ID_LIMIT, cell=cell)
    if name.agent is None:
        return shown
    if not name.agent:
        return f"{shown} ({NO_AGENT})"
    return f"{shown} (agent {code_span(name.agent, limit=ID_LIMIT, cell=cell)})"


def render_cause(cause: Cause, limit: int, *, cell: bool = False) -> str:
    """Return name and reason of a cause, each in code."""
    texts = [text for text in (cause.name, cause.reason) if text]
    shown = [code_span(text, limit=limit, cell=cell) for text in texts]
    return ": ".join(shown) or ABSENT
