"""`agent-eval acknowledge` writes an entry that the report reads, or nothing."""

from __future__ import annotations

import datetime as dt

import pytest

from ci_agent_eval.app.acknowledgement import acknowledge_scenario, resolve_last_day
from ci_agent_eval.config.options import ACKNOWLEDGED_NAME
from ci_agent_eval.config.settings import load_settings, load_waivers
from ci_agent_eval.errors import InputError
from tests.render_reports import HOSTILE
from tests.tables import each_row

TODAY = dt.date(2026, 1, 1)


def accept(root, scenario="tone", until="2026-01-31", reason="terse on purpose", agent=None):
    settings = load_settings(root=root, environ={}, flags={})
    day = resolve_last_day(until, TODAY)
    return acknowledge_scenario(
        root, settings, scenario, agent=agent, until=day, reason=reason, today=TODAY
    )


def test_an_entry_is_added_and_read_back(tmp_path):
    assert accept(tmp_path) == ACKNOWLEDGED_NAME
    accept(tmp_path, "length", agent="desk")
    settings = load_settings(root=tmp_path, environ={}, flags={})
    found = load_waivers(tmp_path, settings, TODAY).acknowledged
    assert [(one.scenario, one.agent, one.reason) for one in found] == [
        ("tone", None, "terse on purpose"),
        ("length", "desk", "terse on purpose"),
    ]
    assert all(one.until == dt.date(2026, 1, 31) and not one.expired for one in found)


def test_the_rest_of_the_file_stays_as_it_is(tmp_path):
    path = tmp_path / ACKNOWLEDGED_NAME
    path.write_text(
        "# ours\n\n[[acknowledged]] # slow\nscenario = 'a'\nreason = 'b'\nuntil = '2026-01-02'\n"
    )
    before = path.read_text()
    accept(tmp_path)
    assert path.read_text().startswith(before)
    assert path.read_text().endswith(
        '\n\n[[acknowledged]]\nscenario = "tone"\nreason = "terse on purpose"\nuntil = "2026-01-31"\n'
    )


def test_any_text_is_read_back_as_it_was(tmp_path):
    text = f"{HOSTILE}\x7f'''\"\"\""
    accept(tmp_path, text, reason=text[:400])
    settings = load_settings(root=tmp_path, environ={}, flags={})
    (found,) = load_waivers(tmp_path, settings, TODAY).acknowledged
    assert (found.scenario, found.reason) == (text, text[:400])


@each_row(
    ("given", "sentence"),
    [
        ({"until": "2025-12-31"}, "--until: 2025-12-31 has passed; give 2026-01-01 or a later"),
        (
            {"until": "2026-08-01"},
            "--until: 2026-08-01 is more than 180 days away; give 2026-06-30",
        ),
        ({"until": "soon"}, r"--until: give a date as YYYY-MM-DD, .* \(got 'soon'\)"),
        ({"until": "20260131"}, "--until: give a date as YYYY-MM-DD"),
        ({"until": "2026-02-30"}, "--until: give a date as YYYY-MM-DD"),
        ({"scenario": "*"}, "matches every scenario"),
        ({"reason": ""}, r"acknowledged.0.reason"),
    ],
)
def test_a_wrong_entry_is_refused_and_nothing_is_written(tmp_path, given, sentence):
    with pytest.raises(InputError, match=sentence):
        accept(tmp_path, **given)
    assert not (tmp_path / ACKNOWLEDGED_NAME).exists()


def test_a_scenario_is_acknowledged_once(tmp_path):
    accept(tmp_path)
    with pytest.raises(
        InputError, match="'tone' is acknowledged already, until 2026-01-31; change"
    ):
        accept(tmp_path, until="2026-02-28")


def test_a_broken_file_is_named_and_kept(tmp_path):
    path = tmp_path / ACKNOWLEDGED_NAME
    path.write_text("[[acknowledged]\n")
    with pytest.raises(InputError, match="is not valid TOML"):
        accept(tmp_path)
    assert path.read_text() == "[[acknowledged]\n"


@each_row(
    ("until", "day"), [("30d", "2026-01-31"), ("0d", "2026-01-01"), ("2026-03-01", "2026-03-01")]
)
def test_a_number_of_days_counts_from_today(until, day):
    assert resolve_last_day(until, TODAY) == dt.date.fromisoformat(day)
