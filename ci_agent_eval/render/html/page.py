"""`report.html`: the whole report on one page that needs no network.

Jinja2 renders the frame; scenarios and episodes are data in it. Our script shows a part of
them at a time, so that the page stays fluent with thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    ConversationSample,
    ScenarioComparison,
)
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render.comparison_wording import (
    describe_condition,
    describe_method,
    describe_rename,
    describe_tool,
)
from ci_agent_eval.render.html import assets
from ci_agent_eval.render.html.cause_cards import Part, build_phrase
from ci_agent_eval.render.html.episodes import EpisodeRows, build_suite_bars, count_attempts
from ci_agent_eval.render.html.page_limits import (
    OmittedCounts,
    PageFiles,
    PageLimits,
    PageText,
    embed_json,
)
from ci_agent_eval.render.html.scenario_rows import (
    build_scenario_data,
    index_scenarios,
    select_scenario_rows,
)
from ci_agent_eval.render.links import Links, Place, is_web_address, quote_url
from ci_agent_eval.render.markdown.report import SHORT_SHA
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import ScenarioKey
from ci_agent_eval.render.report_view import ReportView

CHUNK = 65_536
"""Characters of a piece of the page."""


_CAPS = PageLimits()


def render_html(
    view: ReportView,
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
    *,
    budgets: SuiteBudgets,
    samples: Sequence[ConversationSample] = (),
    caps: PageLimits = _CAPS,
) -> Iterator[str]:
    """Yield the page in pieces.

    `lines` are the canonical JSON of the episodes, without secrets, one for each of
    `episodes` and in their order; they are read once, while the page is written. `samples`
    are conversations of the baseline.
    """
    cut = OmittedCounts()
    texts = PageText(caps, cut)
    places = PageFiles(texts, view.links)
    scenarios = select_scenario_rows(view, texts)
    numbers = {row.key: number for number, row in enumerate(scenarios)}
    compared = index_scenarios(view)
    describe = _describe_compared(view, texts, samples, episodes)
    rows = EpisodeRows(texts, places, numbers, count_attempts(episodes))
    context = {
        "view": view,
        "compared_across": _list_compared_across(view.comparison),
        "method": "" if view.comparison is None else describe_method(view.comparison),
        "label": texts.name(view.comparison.label) if view.comparison else "",
        "no_baseline": texts.text(view.no_baseline or ""),
        "budgets": _mark_safe(embed_json(build_suite_bars(budgets, view.totals, texts))),
        **_build_causes(view, texts, numbers),
        "links": _list_links(view.links),
        "scenarios": _join_rows(
            {
                **build_scenario_data(row, compared.get(row.key), texts, places),
                **describe(compared.get(row.key)),
            }
            for row in scenarios
        ),
        "scenario_count": len(scenarios),
        "episodes": _join_rows(rows.lines(zip(episodes, lines, strict=True)), written=True),
        "episode_count": len(episodes),
        "places": lambda: _mark_safe(embed_json(places.list_files())),
        "left_out": lambda: _describe_omitted(cut),
        "texts": texts,
        "count": format_count,
        "counted": count_noun,
        "place": lambda place: _format_place(place, texts),
        "script": assets.read_script(),
        "style": assets.read_style(),
        "policy": assets.content_policy(assets.read_script(), assets.read_style()),
    }
    yield from _join_pieces(assets.load_template().generate(context))


def _build_causes(
    view: ReportView, texts: PageText, numbers: Mapping[ScenarioKey, int]
) -> Mapping[str, Any]:
    if not (view.changes or view.cards):
        return {"changes": (), "causes": ()}
    # It is not worth its start-up time to a report that has none.
    from ci_agent_eval.render.html.cause_cards import CausePages  # noqa: PLC0415 - see above

    return CausePages(view, texts, numbers).build(view)


def _describe_compared(
    view: ReportView,
    texts: PageText,
    samples: Sequence[ConversationSample],
    episodes: Sequence[EpisodeRecord],
) -> Callable[[ScenarioComparison | None], Mapping[str, Any]]:
    """Return the function that describes how a scenario differs from the baseline."""
    if view.comparison is None:
        return lambda _: {}
    from ci_agent_eval.render.html.comparison import (  # noqa: PLC0415 - see above
        BaselineConversations,
        build_compared_row,
    )

    talks = BaselineConversations(samples, episodes, texts)
    return lambda one: {"compared": build_compared_row(one, texts, talks)} if one else {}


def _list_compared_across(found: Comparison | None) -> Sequence[Sequence[Part]]:
    """Return the conditions that differ, and the tools whose name or use changed."""
    if found is None:
        return ()
    phrases = [*map(describe_condition, found.changed_conditions)]
    phrases += [*map(describe_rename, found.tool_renames), *map(describe_tool, found.tool_changes)]
    return list(map(build_phrase, phrases))


def _join_rows(rows: Iterable[Any], *, written: bool = False) -> Iterator[Markup]:
    """Yield the entries of a JSON list; `written`: they are JSON already."""
    separator = ""
    for row in rows:
        yield _mark_safe(separator + (row if written else embed_json(row)))
        separator = ",\n"


def _mark_safe(json: str) -> Markup:
    """Mark embedded JSON as safe for the template."""
    return Markup(json)  # noqa: S704 - made by embedded_json


def _list_links(links: Links) -> list[tuple[str, str]]:
    """Return text and address of the links to run, artifact and commit."""
    found = [("Workflow run", links.run_url), ("Artifact", links.artifact_url)]
    if links.sha:
        found.append((f"Commit {links.sha[:SHORT_SHA]}", links.commit()))
    return [(text, quote_url(url)) for text, url in found if url and is_web_address(url)]


def _format_place(place: Place, texts: PageText) -> tuple[str, str | None] | None:
    """Return the text of a place, and its address."""
    if not place.file:
        return None
    return texts.name(place.text), place.url if is_web_address(place.url) else None


def _describe_omitted(cut: OmittedCounts) -> list[str]:
    """Count the omitted texts, entries, conversations, episodes and scenarios."""
    omissions = (
        (cut.texts, "text is", "texts are", "shown only in its beginning"),
        (cut.items, "entry of a list is", "entries of lists are", "left out"),
        (cut.conversations, "episode is", "episodes are", "listed without the conversation"),
        (cut.episodes, "episode is", "episodes are", "not listed"),
        (cut.scenarios, "scenario is", "scenarios are", "not listed"),
    )
    return [
        f"{count_noun(number, one, many)} {effect}"
        for number, one, many, effect in omissions
        if number
    ]


def _join_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Join small pieces; a template yields one for every word."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)
