"""Every block of docs/simulation.md runs, and the errors it shows are what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci_agent_eval.authoring.scenarios.load import parse_scenarios
from ci_agent_eval.authoring.simulation.conversation import SimulationStop
from ci_agent_eval.contract.scenario import ScenarioChecks, ScenarioEntry
from ci_agent_eval.errors import InputError
from tests.processes import run_agent_eval

PAGE = (Path(__file__).parents[2] / "docs/simulation.md").read_text()
TESTS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def run(folder):
    return run_agent_eval("run", "test_page.py", "--", "-W", "error", cwd=folder)


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("number", range(len(TESTS)))
def test_the_blocks_run(number, folder):
    (folder / "test_page.py").write_text(TESTS[number])
    done = run(folder)
    assert done.returncode == 0, done.stdout
    count = 2 if "more.csv" in TESTS[number] else 1
    assert f"{count} of {count} scenario" in done.stdout


@pytest.mark.parametrize(
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
