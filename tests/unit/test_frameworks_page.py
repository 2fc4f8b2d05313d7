"""docs/agents.md shows what the runs of the real frameworks recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ci_agent_eval.engine.adapters.frameworks.registry import FRAMEWORKS as ADAPTERS
from tests.frameworks import page
from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_recorded_rows():
    text = page.PAGE.read_text("utf-8")
    assert page.render_page(text) == text, "run `make frameworks`"


def test_every_adapter_has_a_row_and_every_row_the_locked_version():
    rows = page.load_rows()
    assert list(rows) == list(FRAMEWORKS)
    without_adapter = {"node", "sdks"}  # other languages, and functions
    tested = [one for one in FRAMEWORKS.values() if one.environment not in without_adapter]
    assert len(tested) == len(ADAPTERS)
    for name, row in rows.items():
        package, _, version = row["version"].partition(" ")
        assert version in find_locked_versions(FRAMEWORKS[name].environment, package), name
        assert list(row["cells"]) == list(COLUMNS)


def find_locked_versions(environment, package):
    """Return the versions of a package in an environment's lock; some differ by Python."""
    if environment == "node":
        lock = json.loads((ROOT / "tests/package-lock.json").read_text())
        return [lock["packages"][f"node_modules/{package}"]["version"]]
    sections = (ROOT / "requirements/matrix.txt").read_text()
    lock = sections.partition(f"# [{environment}]\n")[2].partition("\n\n")[0]
    return re.findall(rf"^{package}==(\S+)", lock, re.MULTILINE)
