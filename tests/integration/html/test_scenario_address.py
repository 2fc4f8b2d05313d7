"""The address of a scenario, as comments link to it: `report.html#scenario=ID`."""

from __future__ import annotations

import pytest

from ci_agent_eval.render.links import Links
from tests.builders import episode, failed_assertion, failing, turn
from tests.integration.html.browser import page_of

ODD = "refund/50 %, ä#b&c='d'"


def conversation(answer):
    return {"turns": [{"role": "user", "content": "May I return them?"}, turn(answer)]}


def suite():
    fails = [failed_assertion("states the limit", reason="it is not in the answer")]
    return [
        episode(ODD, trajectory=conversation("Within 30 days.")),
        failing(ODD, iteration=2, assertions=fails, trajectory=conversation("Within 60 days.")),
        failing("parcel", assertions=fails, trajectory=conversation("It is on its way.")),
    ]


def find_anchor(scenario_id: str) -> str:
    address = Links(report_url="https://github.com/o/r/1").conversation(scenario_id)
    assert address is not None
    return "#" + address.partition("#")[2]


@pytest.mark.parametrize(("name", "shown"), [(ODD, "Within 60 days."), ("parcel", "on its way")])
def test_it_opens_the_first_failing_conversation(show, name, shown):
    opened = show(page_of(suite()), fragment=find_anchor(name))
    assert opened.page.get_by_text(shown).first.is_visible()
    assert opened.seen.nothing(), opened.seen


@pytest.mark.parametrize("fragment", ["#scenario=gone", "#scenario=%E0%A4%A", "#scenario="])
def test_an_unknown_one_opens_the_report(show, fragment):
    opened = show(page_of(suite()), fragment=fragment)
    assert opened.page.locator("h1").first.is_visible()
    assert opened.seen.nothing(), opened.seen
