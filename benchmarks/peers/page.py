"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .capacity import Capacity
from .episodes import Row, cpu_ratio, figure_of, measured_figure, ratio
from .growth import Growth
from .junit import CASES, FLOOR, Parsed
from .junit import OURS as OUR_PARSER
from .runners import BOUND, OURS, OURS_TWO
from .runs import Failure, Figure

MOST_OVER_BOUND = 1.1
MOST_OF_TWO = 0.65
MOST_KEPT_KB = 20.0
COLUMNS = (
    *("runner", "start-up", "episodes", "× bound", "× ours", "processor", "peak memory"),
    *("processes", "calls at once", "remark"),
)
FLAT = 1.15
"""An episode among the most may cost so many times what one among the fewest does."""


@dataclass(frozen=True)
class Measured:
    """All that one go came to."""

    machine: str
    load: float
    """The load average when it began."""
    versions: str
    capacities: Sequence[tuple[str, Capacity]]
    episodes: int
    fast: Sequence[Row]
    """A model of 50 ms a call."""
    slow: Sequence[Row] = ()
    """A model of 1 s a call."""
    many: Sequence[Row] = ()
    many_episodes: int = 0
    growth: Sequence[Growth | Failure] = ()
    empty: Growth | Failure | None = None
    """pytest alone with as many empty tests as the largest of `growth`."""
    parsed: Sequence[Parsed] = ()
    junit_files: int = 0
    """Of a thousand cases each."""
    minutes: float = field(default=0, compare=False)


def section(found: Measured) -> str:
    """Render everything; headings begin at the second level."""
    parts = [
        _intro(found),
        _held(found),
        _table(f"{found.episodes} episodes, 50 ms a model call", found.fast),
    ]
    if found.slow:
        parts.append(_table(f"{found.episodes} episodes, 1 s a model call", found.slow))
    if found.many:
        parts.append(_table(f"{found.many_episodes:,} episodes, 50 ms a model call", found.many))
    parts.append(_failures(found))
    if found.growth:
        parts += [_growth(found), _points(found.growth)]
    if found.parsed:
        parts.append(_parsers(found))
    return "\n\n".join(part for part in parts if part) + "\n"


def _intro(found: Measured) -> str:
    capacities = "; ".join(
        f"{name}: {c.calls_a_second:,.0f} calls a second, {c.server_cpu_ms:.2f} ms of its "
        "processor each"
        for name, c in found.capacities
    )
    return "\n".join(
        [
            f"Measured in one go of {found.minutes:.0f} minutes on: {found.machine};",
            f"load average {found.load:.1f} at the start.",
            found.versions,
            "",
            "An episode is two model calls and one tool call between them. The same scripted",
            "model server, a process of its own on the loopback that no figure here contains,",
            "answers all of them, and its count of calls says whether all episodes were run. What",
            f"it can answer at most, asked by 50 raw connections: {capacities}.",
            "",
            "Every run is a process tree. Start-up is that of a run of one episode, without the",
            "model's delay; it is taken away from the time of the episodes (collection is not).",
            "Processor: user and system time of all processes of the tree, start-up included, and",
            "how many times that of the bound it is, start-up apart.",
            "Memory: the highest sum of PSS over the tree, looked at ten times a second.",
            "`× bound` holds a runner against bare asyncio that does the same work: with the same",
            "PydanticAI agent, with the tool on an MCP server, or with the same hand-written loop.",
            "`× ours` is how many times as long as `--episode-concurrency 50` it took.",
        ]
    )


def _held(found: Measured) -> str:
    bound, ours = (figure_of(found.fast, runner.name) for runner in (BOUND, OURS))
    rows = [
        _target(
            f"at most {MOST_OVER_BOUND} × the bound at concurrency 50",
            ratio(ours, bound),
            MOST_OVER_BOUND,
            lambda value: f"{value:.2f} ×",
        ),
        _fastest(found.fast, ours),
    ]
    if found.slow:
        slow_bound, slow = (figure_of(found.slow, runner.name) for runner in (BOUND, OURS))
        rows.append(
            _target(
                f"the same at 1 s a call: {MOST_OVER_BOUND} ×",
                ratio(slow, slow_bound),
                MOST_OVER_BOUND,
                lambda value: f"{value:.2f} ×",
            )
        )
    if found.many:
        many, two = (figure_of(found.many, runner.name) for runner in (BOUND, OURS_TWO))
        rows.append(
            _target(
                f"`-n 2` below {MOST_OF_TWO} × the bound on {found.many_episodes:,} episodes",
                ratio(two, many),
                MOST_OF_TWO,
                lambda value: f"{value:.2f} ×",
            )
        )
    rows += _growth_targets(found.growth)
    return "\n".join(["| must hold | measured | |", "|---|---:|---|", *rows])


def _target(what: str, value: float | None, most: float, written: Callable[[float], str]) -> str:
    if value is None:
        return f"| {what} | not measured | **missed** |"
    return f"| {what} | {written(value)} | {'met' if value <= most else '**missed**'} |"


def _fastest(rows: Sequence[Row], ours: Row) -> str:
    what = "less time than every peer"
    if ours.seconds is None:
        return f"| {what} | not measured | **missed** |"
    faster = [
        f"{row.runner.name} {row.seconds:.2f} s"
        for row in rows
        if row.runner.kind == "peer" and row.seconds is not None and row.seconds <= ours.seconds
    ]
    if not faster:
        return f"| {what} | {ours.seconds:.2f} s | met |"
    return f"| {what} | {ours.seconds:.2f} s | **missed**: {', '.join(faster)} |"


def _growth_targets(growth: Sequence[Growth | Failure]) -> list[str]:
    runs = [run for run in growth if isinstance(run, Growth)]
    if not runs:
        return []
    first, last = runs[0], runs[-1]
    flat = last.cpu_ms / first.cpu_ms
    return [
        _target(
            f"an episode costs the same among {first.episodes:,} and {last.episodes:,} (processor)",
            flat,
            FLAT,
            lambda value: f"{value:.2f} ×",
        ),
        _target(
            f"memory grows by less than {MOST_KEPT_KB:.0f} KB an episode ({last.episodes:,})",
            last.kept_kb,
            MOST_KEPT_KB,
            lambda value: f"{value:.1f} KB",
        ),
    ]


def _table(title: str, rows: Sequence[Row]) -> str:
    lines = [
        f"## {title}",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        *(_line(row, rows) for row in rows),
    ]
    return "\n".join(lines)


def _line(row: Row, rows: Sequence[Row]) -> str:
    figure = measured_figure(row)
    if figure is None or row.seconds is None:
        return f"| {row.runner.name} | | **failed** | | | | | | | {_note(row)} |"
    bound = figure_of(rows, _held_to(row, rows))
    cells = [
        row.runner.name,
        _startup(row),
        f"{row.seconds:.2f} s",
        _times(ratio(row, bound)),
        _times(ratio(row, figure_of(rows, OURS.name))),
        _processor(row, figure, bound),
        f"{figure.peak_mb:.0f} MB",
        str(figure.processes),
        str(figure.calls_at_once),
        _note(row),
    ]
    return f"| {' | '.join(cells)} |"


def _held_to(row: Row, rows: Sequence[Row]) -> str:
    """Return the name of the row's bound; a bound is its own."""
    if row.runner.kind == "bound":
        return row.runner.name
    names = {other.runner.name for other in rows}
    wanted = BOUND.name if row.runner.held_to == "bound" else row.runner.held_to
    return wanted if wanted in names else BOUND.name


def _startup(row: Row) -> str:
    return "" if isinstance(row.startup, Failure) else f"{row.startup.seconds:.2f} s"


def _processor(row: Row, figure: Figure, bound: Row) -> str:
    """Write the seconds of the whole run, and those of the episodes held against the bound's."""
    if row.scale > 1:
        return ""
    times = cpu_ratio(row, bound)
    return f"{figure.cpu_seconds:.1f} s" + ("" if times is None else f", {times:.2f} ×")


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ×"


def _note(row: Row) -> str:
    notes = [row.runner.note]
    if row.scale > 1:
        notes.append(f"a share of the episodes ran; their time is taken {row.scale} times")
    if row.runner.at_once > 1 and row.runner.at_once < 25:
        notes.append(f"{row.runner.at_once} at once")
    return "; ".join(note for note in notes if note)


def _failures(found: Measured) -> str:
    lines = [
        f"- {row.runner.name}: `{reason}`"
        for row in [*found.fast, *found.slow, *found.many]
        if (reason := _reason(row))
    ]
    lines += [
        f"- ours, growing: `{run.reason}`" for run in found.growth if isinstance(run, Failure)
    ]
    lines += [
        f"- {parsed.parser.name}: `{parsed.result.reason}`"
        for parsed in found.parsed
        if isinstance(parsed.result, Failure)
    ]
    unique = list(dict.fromkeys(lines))
    return "\n".join(["## What failed", "", *unique]) if unique else ""


def _reason(row: Row) -> str:
    for result in (row.result, row.startup):
        if isinstance(result, Failure):
            return result.reason.replace("`", "'")
    return ""


def _growth(found: Measured) -> str:
    lines = [
        "## Growth",
        "",
        "`--episode-concurrency 50`, 50 ms a model call. Time and processor are those from the end",
        "of the collection on, of pytest's process; what each further episode leaves resident is",
        f"the slope of its memory over {len(_notes(found.growth))} points of the run, the first",
        "tenth apart.",
        "",
        "| episodes | wall, each | processor, each | kept of each | peak memory | whole run |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    runs = [(f"{run.episodes:,}", run) for run in found.growth if isinstance(run, Growth)]
    if isinstance(found.empty, Growth):
        runs.append((f"{found.empty.episodes:,} empty tests, pytest alone", found.empty))
    return "\n".join(lines + [_growth_line(what, run) for what, run in runs])


def _growth_line(what: str, run: Growth) -> str:
    return (
        f"| {what} | {run.wall_ms:.2f} ms | {run.cpu_ms:.2f} ms | {run.kept_kb:.1f} KB | "
        f"{run.peak_mb:.0f} MB | {run.seconds:.1f} s |"
    )


def _notes(growth: Sequence[Growth | Failure]) -> Sequence[object]:
    return next((run.notes for run in reversed(growth) if isinstance(run, Growth)), ())


def _points(growth: Sequence[Growth | Failure]) -> str:
    last = next((run for run in reversed(growth) if isinstance(run, Growth)), None)
    if last is None:
        return ""
    points = [f"{note.finished:,}: {note.resident / 1e6:.0f} MB" for note in last.notes[::4]]
    return f"Resident memory of the largest run by episodes finished: {'; '.join(points)}."


def _parsers(found: Measured) -> str:
    floor, ours = (_figure(found.parsed, name) for name in (FLOOR.name, OUR_PARSER.name))
    lines = [
        f"## JUnit: {found.junit_files * CASES:,} cases in {found.junit_files} files",
        "",
        "Whole processes, start-up included, in alternating rounds; each counts cases and failures",
        "and is held to the right numbers.",
        "",
        "| parser | wall time | × expat | × ours | processor | peak memory | remark |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for parsed in found.parsed:
        if isinstance(parsed.result, Failure):
            lines.append(f"| {parsed.parser.name} | **failed** | | | | | {parsed.parser.note} |")
            continue
        figure = parsed.result
        lines.append(
            f"| {parsed.parser.name} | {figure.seconds:.2f} s | {_over(figure, floor)} | "
            f"{_over(figure, ours)} | {figure.cpu_seconds:.2f} s | {figure.peak_mb:.0f} MB | "
            f"{parsed.parser.note} |"
        )
    return "\n".join(lines)


def _figure(parsed: Sequence[Parsed], name: str) -> Figure | None:
    result = next(item.result for item in parsed if item.parser.name == name)
    return None if isinstance(result, Failure) else result


def _over(figure: Figure, other: Figure | None) -> str:
    return "" if other is None else f"{figure.seconds / other.seconds:.1f} ×"
