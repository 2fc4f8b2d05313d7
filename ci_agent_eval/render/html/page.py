"""`report.html`: the whole report on one page that needs no network.

The frame is made by Jinja2; scenarios and episodes are data in it, of which a script of
ours shows a part at a time, so that the page stays fluent with thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from markupsafe import Markup

from ci_agent_eval.analysis.comparison.model import ConversationSample
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render.html import assets
from ci_agent_eval.render.html.beside import Beside
from ci_agent_eval.render.html.budget_bars import suite_bars
from ci_agent_eval.render.html.caps import Caps, Cut, Shown
from ci_agent_eval.render.html.charts import charts
from ci_agent_eval.render.html.comparison import Sides, sides_of
from ci_agent_eval.render.html.embed import embedded_json
from ci_agent_eval.render.html.episode_rows import Rows, attempts_of
from ci_agent_eval.render.html.places import Places
from ci_agent_eval.render.html.scenario_rows import listed_scenarios, scenario_row
from ci_agent_eval.render.html.why import told_reasons
from ci_agent_eval.render.links import Links, Place, quoted_url
from ci_agent_eval.render.markdown.report import SHORT_SHA
from ci_agent_eval.render.numbers import count, counted
from ci_agent_eval.render.report_view import ReportView

CHUNK = 65_536
"""Characters that are put together before they are handed on."""

_CAPS = Caps()


def render_html(
    view: ReportView,
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
    *,
    budgets: SuiteBudgets,
    samples: Sequence[ConversationSample] = (),
    caps: Caps = _CAPS,
) -> Iterator[str]:
    """Yield the page in pieces.

    `lines` are the canonical JSON of the episodes, without secrets, one for each of
    `episodes` and in their order; they are read once, while the page is written. `samples`
    are conversations of the base, to stand beside those of scenarios that changed.
    """
    cut = Cut()
    shown = Shown(caps, cut)
    places = Places(shown, view.links)
    scenarios = listed_scenarios(view, shown)
    numbers = {row.key: number for number, row in enumerate(scenarios)}
    comparison = sides_of(view, shown, Beside(samples, episodes, shown))
    rows = Rows(shown, places, numbers, attempts_of(episodes))
    context = {
        "view": view,
        "comparison": comparison,
        "talks": _talks(comparison),
        "no_baseline": shown.text(view.no_baseline or ""),
        "budgets": suite_bars(budgets, view.totals, shown),
        "charts": charts(episodes),
        "reasons": told_reasons(view),
        "links": _page_links(view.links),
        "scenarios": _data(scenario_row(row, shown, places) for row in scenarios),
        "scenario_count": len(scenarios),
        "episodes": _data(rows.lines(zip(episodes, lines, strict=True)), written=True),
        "episode_count": len(episodes),
        "places": lambda: _as_it_is(embedded_json(places.listed())),
        "left_out": lambda: _left_out(cut),
        "shown": shown,
        "count": count,
        "counted": counted,
        "place": lambda place: _place(place, shown),
        "script": assets.script(),
        "style": assets.style(),
        "policy": assets.content_policy(assets.script(), assets.style()),
    }
    yield from _together(assets.template().generate(context))


def _talks(comparison: Sides | None) -> Markup:
    """Return the conversations of scenarios that changed, by their place among the pairs."""
    pairs = () if comparison is None else comparison.pairs
    return _as_it_is(embedded_json({str(at): p.talks for at, p in enumerate(pairs) if p.talks}))


def _data(rows: Iterable[Any], *, written: bool = False) -> Iterator[Markup]:
    """Yield the entries of a JSON list; `written`: they are JSON already."""
    separator = ""
    for row in rows:
        yield _as_it_is(separator + (row if written else embedded_json(row)))
        separator = ",\n"


def _as_it_is(json: str) -> Markup:
    """Return embedded JSON for the template, which has nothing to escape in it."""
    return Markup(json)  # noqa: S704 - made by embedded_json


def _page_links(links: Links) -> list[tuple[str, str]]:
    """Return what the page links to beside lines of files: text and address."""
    found = [("Workflow run", links.run_url), ("Artifact", links.artifact_url)]
    if links.sha:
        found.append((f"Commit {links.sha[:SHORT_SHA]}", links.commit()))
    return [(text, quoted_url(url)) for text, url in found if url and _is_web(url)]


def _is_web(url: str) -> bool:
    return url.startswith(("https://", "http://"))


def _place(place: Place, shown: Shown) -> tuple[str, str | None] | None:
    """Return the text of a place, and its address."""
    if not place.file:
        return None
    return shown.name(place.text), place.url if place.url and _is_web(place.url) else None


def _left_out(cut: Cut) -> list[str]:
    """Say what the page does not hold; nothing where it is the whole."""
    told = (
        (cut.texts, "text is", "texts are", "shown only in its beginning"),
        (cut.items, "entry of a list is", "entries of lists are", "left out"),
        (cut.conversations, "episode is", "episodes are", "listed without the conversation"),
        (cut.episodes, "episode is", "episodes are", "not listed"),
        (cut.scenarios, "scenario is", "scenarios are", "not listed"),
    )
    return [f"{counted(number, one, many)} {what}" for number, one, many, what in told if number]


def _together(pieces: Iterable[str]) -> Iterator[str]:
    """Put small pieces together; a template yields one for every word."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)
