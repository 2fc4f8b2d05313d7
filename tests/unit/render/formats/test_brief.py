"""The brief: it fits, names the causes that gate, and nothing in it acts that an episode said."""

from __future__ import annotations

import json

from hypothesis import given, settings

from ci_agent_eval.render.formats.brief import MOST_CAUSES, render_brief_json, render_brief_markdown
from ci_agent_eval.render.markdown.guard import find_foreign_elements
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report
from tests.comment_reports import hostile_behaviour
from tests.render_reports import REPORTS, hostile
from tests.tables import each_row
from tests.unit.render.markdown.test_report import OUR_PART, TEXT, well_formed

MAX_SIZE = 40_000


def brief(built):
    return json.loads(render_brief_json(build_report_view(built)))


def test_an_error_is_at_the_place_of_its_exception():
    reason = "ModuleNotFoundError: No module named 'crm' (agent/tools.py:4)"
    found = brief(report(episode("a", outcome="error", reason=reason)))["causes"]
    (cause,) = [one for one in found if one["example"] is not None]
    example = cause["example"]
    assert (example["file"], example["line"]) == ("agent/tools.py", 4)
    assert (example["check"], example["message"]) == (
        None,
        "ModuleNotFoundError: No module named 'crm'",
    )
    assert cause["notes"] == ["Install crm where the suite runs, then run it again."]


def test_causes_after_the_first_are_counted():
    checks = [failed_assertion(f"check {letter}") for letter in "abcdefgh"]
    built = report(*(failing(one["name"], assertions=[one]) for one in checks))
    found = brief(built)
    assert (len(found["causes"]), found["more_causes"]) == (MOST_CAUSES, 3)
    assert "3 more causes in `report.html`" in render_brief_markdown(build_report_view(built))


@each_row("name", REPORTS)
def test_every_brief_is_short_ours_alone_and_well_formed(name):
    view = build_report_view(REPORTS[name]())
    text = render_brief_markdown(view)
    well_formed(text)
    assert find_foreign_elements(text, ()) == ()
    assert max(len(text), len(render_brief_json(view))) < MAX_SIZE


@given(text=TEXT)
@settings(max_examples=30)
def test_any_text_in_any_field_is_harmless(text):
    for built in (hostile(text), hostile_behaviour(text)):
        shown = render_brief_markdown(build_report_view(built))
        well_formed(shown)
        assert find_foreign_elements(shown, ()) == ()
        for cause in brief(built)["causes"]:
            for line in cause["diff"]:
                assert line.startswith(("  ", "- ", "+ ")) or OUR_PART.fullmatch(line)


def test_long_texts_are_cut():
    text = "long " * 100_000
    built = report(failing("a", assertions=[failed_assertion(text, reason=text)]))
    view = build_report_view(built)
    assert len(render_brief_markdown(view)) < MAX_SIZE
    assert len(render_brief_json(view)) < MAX_SIZE
