"""docs/simulation.md: the errors it shows are what is said, and it names every key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci_agent_eval.authoring.scenarios.load import parse_scenarios
from ci_agent_eval.authoring.simulation.result import SimulationStop
from ci_agent_eval.contract.scenario import ScenarioChecks, ScenarioEntry
from ci_agent_eval.errors import InputError
from tests.tables import each_row

PAGE = (Path(__file__).parents[2] / "docs/simulation.md").read_text()
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@each_row(
    ("name", "right", "wrong"),
    [("desk.yaml", "persona:", "persna:"), ("more.csv", ",0\n", ",few\n")],
)
def test_the_errors_are_what_is_said(name, right, wrong):
    text = FILES[name]
    assert right in text
    with pytest.raises(InputError) as refused:
        parse_scenarios(text.replace(right, wrong).encode(), name)
    assert str(refused.value) in PAGE


def test_every_key_check_and_end_is_on_the_page():
    names = [*ScenarioEntry.model_fields, *ScenarioChecks.model_fields, *SimulationStop.__args__]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
