"""Quarantine in the configuration, and the file of what is acknowledged."""

from __future__ import annotations

import datetime as dt

import pytest

from ci_agent_eval.config.options import ACKNOWLEDGED_NAME
from ci_agent_eval.config.settings import (
    MAX_WAIVER_DAYS,
    load_acknowledged,
    load_settings,
    load_waivers,
)
from ci_agent_eval.errors import InputError
from tests.tables import each_row

TODAY = dt.date(2026, 1, 1)
ONE = '[[quarantine]]\nscenario = "refund*"\nowner = "a"\nreason = "b"\nuntil = "2026-01-31"\n'
TWO = '[[quarantine]]\nscenario = "other"\nreason = "b"\nuntil = 2026-01-31\n'
HELD = '[[acknowledged]]\nscenario = "refund"\nreason = "b"\nuntil = "2026-01-31"\n'


def quarantine(tmp_path, text, name="agent-eval.toml"):
    (tmp_path / name).write_text(text)
    return load_settings(root=tmp_path, environ={}, flags={}).quarantine


def test_entries_are_read_with_texts_and_with_dates_of_toml(tmp_path):
    first, second = quarantine(tmp_path, ONE + TWO + 'owner = "c"\n')
    assert (first.scenario, first.owner, first.until) == ("refund*", "a", dt.date(2026, 1, 31))
    assert (second.owner, second.until) == ("c", dt.date(2026, 1, 31))


def test_entries_of_pyproject_are_read(tmp_path):
    text = ONE.replace("[[quarantine]]", "[[tool.ci_agent_eval.quarantine]]")
    assert len(quarantine(tmp_path, text, "pyproject.toml")) == 1
    with pytest.raises(InputError, match=r"^pyproject.toml:1: quarantine.0.owner: is required"):
        quarantine(tmp_path, text.replace('owner = "a"\n', ""), "pyproject.toml")


@each_row(
    ("text", "said"),
    [
        (ONE + TWO, "agent-eval.toml:6: quarantine.1.owner: is required"),
        (
            ONE.replace("2026-01-31", "soon"),
            "agent-eval.toml:5: quarantine.0.until: must be a date",
        ),
        (ONE + 'untl = "x"\n', "agent-eval.toml:6: quarantine.0: unknown key 'untl'; did you mean"),
        ('quarantine = "refund"\n', "agent-eval.toml:1: quarantine: must be a list"),
    ],
)
def test_a_wrong_entry_is_told_with_file_and_line(tmp_path, text, said):
    with pytest.raises(InputError) as caught:
        quarantine(tmp_path, text)
    assert str(caught.value).startswith(said)


def test_a_file_of_its_own_is_read_beside_the_settings(tmp_path):
    (tmp_path / "agent-eval.toml").write_text(ONE + 'quarantine_file = "gone.toml"\n')
    with pytest.raises(InputError, match=r"^agent-eval.toml:6: quarantine.0: unknown key"):
        agreed(tmp_path, TODAY)
    (tmp_path / "agent-eval.toml").write_text('quarantine_file = "held.toml"\n' + ONE)
    with pytest.raises(InputError, match=r"^held\.toml: cannot be read .*quarantine_file"):
        agreed(tmp_path, TODAY)
    (tmp_path / "held.toml").write_text(TWO)
    with pytest.raises(InputError, match=r"^held.toml:1: quarantine.0.owner: is required"):
        agreed(tmp_path, TODAY)
    (tmp_path / "held.toml").write_text(TWO + 'owner = "c"\n')
    assert [held.scenario for held in agreed(tmp_path, TODAY).quarantine] == ["refund*", "other"]
    (tmp_path / "agent-eval.toml").write_text('quarantine_file = "held.toml"\n')
    with pytest.raises(InputError, match=r"^held.toml:4: quarantine.0.until: .* 180 days away"):
        agreed(tmp_path, dt.date(2025, 1, 1))


@each_row(
    ("variable", "option", "table"),
    [
        ("AGENT_EVAL_QUARANTINE", "quarantine", TWO + 'owner = "c"\n'),
        ("AGENT_EVAL_ACKNOWLEDGE", "acknowledge", HELD),
    ],
)
def test_both_files_are_named_by_flag_and_by_variable(tmp_path, variable, option, table):
    (tmp_path / "some.toml").write_text(table)
    for given in (
        {"environ": {variable: "some.toml"}, "flags": {}},
        {"environ": {variable: "gone.toml"}, "flags": {option: "some.toml"}},
    ):
        found = load_waivers(tmp_path, load_settings(root=tmp_path, **given), TODAY)
        assert len(found.quarantine + found.acknowledged) == 1


@each_row(
    ("text", "said"),
    [
        (HELD.replace('reason = "b"\n', ""), "known.toml:1: acknowledged.0.reason: is required"),
        (HELD + 'owner = "a"\n', "known.toml:5: acknowledged.0: unknown key 'owner'"),
        (
            "[[acknowledge]]\n",
            "known.toml:1: unknown key 'acknowledge'; did you mean 'acknowledged'",
        ),
        ("[[acknowledged]\n", "known.toml: is not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_where_and_what(tmp_path, text, said):
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_acknowledged(tmp_path, "known.toml", TODAY)
    assert str(caught.value).startswith(said)


def test_a_file_that_was_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"^gone\.toml: cannot be read .*setting acknowledged"):
        load_acknowledged(tmp_path, "gone.toml", TODAY)


def agreed(tmp_path, today, config=None):
    settings = load_settings(root=tmp_path, environ={}, flags={}, config=config)
    return load_waivers(tmp_path, settings, today, config)


@each_row("name", ["agent-eval.toml", "pyproject.toml", "other.toml"])
def test_a_quarantine_has_a_longest_term(tmp_path, name):
    table = "[[tool.ci_agent_eval.quarantine]]" if name == "pyproject.toml" else "[[quarantine]]"
    (tmp_path / name).write_text(
        (ONE + "\n" + TWO + 'owner = "c"\n').replace("[[quarantine]]", table)
    )
    config = tmp_path / name if name == "other.toml" else None
    last = dt.date(2026, 1, 31) - dt.timedelta(MAX_WAIVER_DAYS)
    assert len(agreed(tmp_path, last, config).quarantine) == 2
    with pytest.raises(InputError) as caught:
        agreed(tmp_path, last - dt.timedelta(1), config)
    assert str(caught.value) == (
        f"{config or name}:5: quarantine.0.until: 2026-01-31 is more than 180 days away; "
        "give 2026-01-30 at the latest, and renew it then"
    )


def test_an_acknowledgement_has_a_longest_term(tmp_path):
    (tmp_path / ACKNOWLEDGED_NAME).write_text(HELD.replace("2026-01-31", "9999-12-31"))
    with pytest.raises(InputError) as caught:
        agreed(tmp_path, TODAY)
    said = f"{ACKNOWLEDGED_NAME}:4: acknowledged.0.until: 9999-12-31 is more than 180 days away"
    assert str(caught.value).startswith(said)


@each_row("pattern", ["*", "**", "?*", "[!x]*", "*[a-z]*", " * ", "*?*"])
def test_a_pattern_that_matches_everything(tmp_path, pattern):
    with pytest.raises(InputError) as caught:
        quarantine(tmp_path, ONE.replace("refund*", pattern))
    said = "agent-eval.toml:2: quarantine.0.scenario: matches every scenario; name those"
    assert str(caught.value).startswith(said)
    (tmp_path / ACKNOWLEDGED_NAME).write_text(HELD.replace("refund", pattern))
    with pytest.raises(InputError, match=r"acknowledged.toml:2: .* matches every scenario"):
        load_acknowledged(tmp_path, ACKNOWLEDGED_NAME, TODAY)
