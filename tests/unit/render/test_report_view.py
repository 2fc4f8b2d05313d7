"""The view model of the report, that every format renders."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from ci_agent_eval.render.links import Links, Place
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import agreement, baseline, episode, failed_assertion, failing, report
from tests.render_reports import LINKS, REPORTS


def places(value: Any) -> Iterator[Place]:
    """Yield the places in a view."""
    if isinstance(value, Place):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from places(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from places(item)


def test_a_row_has_its_figures_as_value_and_as_text():
    (row,) = build_report_view(report(failing(duration_ms=1500))).scenarios
    assert (row.duration.value, row.duration.text) == (1500, "1,500 ms")
    assert (row.cost.value, row.cost.text) == (None, "–")
    assert row.passes == "0 / 1"


def test_a_cause_has_the_place_of_its_assertion_or_of_its_test():
    checks = [failed_assertion("a", file="checks/a.py", line=3), failed_assertion("b", file=None)]
    (row,) = build_report_view(report(failing(assertions=checks)), LINKS).scenarios
    assert [cause.place.file for cause in row.causes] == ["checks/a.py", row.place.file]
    assert row.causes[0].place.url == LINKS.blob("checks/a.py", 3)


@pytest.mark.parametrize("name", REPORTS)
def test_every_place_has_its_address_where_the_repository_is_known(name):
    built = REPORTS[name]()
    linked = list(places(build_report_view(built, LINKS)))
    assert all(place.url == LINKS.blob(place.file, place.line) for place in linked)
    assert all(place.url is None for place in places(build_report_view(built, Links())))


@pytest.mark.parametrize("name", REPORTS)
def test_a_view_does_not_change(name):
    view = build_report_view(REPORTS[name](), LINKS)
    for field in dataclasses.fields(view):
        assert not isinstance(getattr(view, field.name), list | dict | set), field.name
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.headline = "passed"


@pytest.mark.parametrize("expired", [False, True])
def test_a_card_names_only_an_acknowledgement_that_has_ended(expired):
    built = report(
        *(failing("tone", iteration=n) for n in range(1, 21)),
        acknowledged=(agreement("tone", expired=expired),),
        baseline=baseline([episode("tone", iteration=n) for n in range(1, 21)]),
    )
    (card,) = build_report_view(built).cards
    assert ("its acknowledgement ended on 2026-01-31" in str(card.body)) is expired
