"""docs/action.md: its files are read."""

from __future__ import annotations

import re
from pathlib import Path

from ci_agent_eval.config.settings import load_settings
from ci_agent_eval.contract.scenario_manifest import parse_manifest

PAGE = (Path(__file__).parents[2] / "docs/action.md").read_text()


def test_the_files_of_the_page_are_read(tmp_path):
    manifest, settings = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    entries = parse_manifest(manifest, "page").entries
    assert entries["refund_over_limit"].cases == ("[early]", "[late]")
    (tmp_path / "agent-eval.toml").write_text(settings)
    read = load_settings(root=tmp_path, environ={}, flags={})
    assert read.pytest_args == ("-m", "not live")
