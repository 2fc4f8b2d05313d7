"""The page of results: a table by kind, and what was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.affected_mutations.measurement import Measurement

_PAGE = """\
# How well the selection finds what a change affects

`agent-eval run --affected` may leave out only scenarios whose behaviour a change cannot have altered.
This page shows how often that held, and how many scenarios ran needlessly, in an example project of
{scenarios} scenarios (`tests/affected_mutations/project`). `make affected-mutations` writes it.

Each mutation changes a copy of the project. All scenarios then run twice: a scenario is **changed** if
its stored conversation differs from the baseline's, or if it fails, is new or does not run. The product
selects from the baseline's recorded dependencies alone. A changed scenario that it does not select is
**missed**. An unchanged one that it selects is **needless**. The author of the mutations had not seen
the code that records and selects. What earlier measurements missed was corrected afterwards (the last of
246 mutations missed 12 changed behaviours of 6), so that no figure here is fully out of sample.

Python {python}; {mutations} of {known} mutations, of {kinds} kinds, {controls} of them controls that change no
behaviour. {full} led to a full run, and {refused} to a refusal (a run that cannot pass).

| mutations | count | changed behaviours | missed | needless | of the unchanged |
|---|---:|---:|---:|---:|---:|
{totals}

"Hubs" are files that everything imports or that configure the whole suite: a changed constant, default
or fixture in them rightly selects nearly all.

## By kind

| kind | mutations | changed | missed | needless | of the unchanged | needless, hubs |
|---|---:|---:|---:|---:|---:|---:|
{rows}

## Missed

{missed}

## Blind spots

Changes that the product cannot see by decision; they are not counted as missed.

{blind_spots}
"""


@dataclass(frozen=True)
class _Sum:
    count: int
    changed: int
    missed: int
    needless: int
    unchanged: int

    @property
    def share(self) -> str:
        return f"{100 * self.needless / self.unchanged:.0f} %" if self.unchanged else "–"


def render_page(measurements: Sequence[Measurement], known: int, python: str) -> str:
    """Return the whole page; `known` is the number of all mutations."""
    mutations = [item.mutation for item in measurements]
    scopes = Counter(item.selection.scope for item in measurements)
    kinds = dict.fromkeys(mutation.kind for mutation in mutations)
    return _PAGE.format(
        python=python,
        scenarios=min(len(item.truth.scenarios) for item in measurements),
        mutations=len(mutations),
        known=known,
        kinds=len(kinds),
        controls=sum(mutation.is_control for mutation in mutations),
        full=scopes["full"],
        refused=scopes["refused"],
        totals="\n".join(_render_totals(measurements)),
        rows="\n".join(_render_kind(kind, measurements) for kind in kinds),
        missed="\n".join(render_missed(measurements)) or "None.",
        blind_spots="\n".join(_render_blind_spots(measurements)) or "None.",
    )


def render_missed(measurements: Iterable[Measurement]) -> list[str]:
    """Return a line for each mutation that changed a scenario which was not selected."""
    return [
        f"- {item.mutation.kind}, {item.mutation.name}: {', '.join(sorted(item.missed))}"
        for item in measurements
        if item.missed
    ]


def _render_blind_spots(measurements: Iterable[Measurement]) -> list[str]:
    return [
        f"- {item.mutation.kind}, {item.mutation.name}: {', '.join(sorted(item.unseen))}"
        f" ({item.mutation.blind_spot})"
        for item in measurements
        if item.mutation.blind_spot and item.unseen
    ]


def _render_totals(measurements: Sequence[Measurement]) -> Iterable[str]:
    hubs = [item for item in measurements if item.mutation.hub]
    others = [item for item in measurements if not item.mutation.hub]
    partial = [item for item in others if item.selection.scope == "partial"]
    controls = [item for item in others if item.mutation.is_control]
    groups = {
        "of hubs": hubs,
        "of other files": others,
        "… without a full run": partial,
        "… controls": controls,
        "**all**": measurements,
    }
    for label, items in groups.items():
        total = _add_up(items)
        figures = (total.count, total.changed, total.missed, total.needless, total.share)
        yield f"| {label} | {' | '.join(map(str, figures))} |"


def _render_kind(kind: str, measurements: Iterable[Measurement]) -> str:
    items = [item for item in measurements if item.mutation.kind == kind]
    hubs = _add_up([item for item in items if item.mutation.hub])
    others = _add_up([item for item in items if not item.mutation.hub])
    everything = _add_up(items)
    figures = (
        everything.count,
        everything.changed,
        everything.missed,
        others.needless,
        others.share,
    )
    hub_share = f"{hubs.needless} ({hubs.share})" if hubs.count else ""
    return f"| {kind} | {' | '.join(map(str, figures))} | {hub_share} |"


def _add_up(items: Sequence[Measurement]) -> _Sum:
    return _Sum(
        len(items),
        sum(len(item.truth.changed) for item in items),
        sum(len(item.missed) for item in items),
        sum(len(item.needless) for item in items),
        sum(len(item.unchanged) for item in items),
    )
