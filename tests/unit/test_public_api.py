"""The page of the public API lists the names that test files import."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/public-api.md").read_text("utf-8")
PACKAGES = ("ci_agent_eval", "ci_agent_eval.checks", "ci_agent_eval.engine")


@pytest.mark.parametrize("package", PACKAGES)
def test_page_lists_the_names_of_a_package(package: str) -> None:
    section = PAGE.partition(f"\n`{package}`:")[2].partition("\n\n")[0]

    assert re.findall(r"`(\w+)`", section) == importlib.import_module(package).__all__
