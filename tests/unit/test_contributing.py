"""CONTRIBUTING.md names places that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)*[\w-]+\.(?:py|md|toml))`")


def test_each_named_file_and_folder_exists():
    named = set(PLACE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    assert "render/report_view.py" in named
    assert [name for name in sorted(named) if not exists(name)] == []


def exists(name):
    package = ROOT / "ci_agent_eval"
    return any((root / name).exists() for root in (ROOT, package)) or any(package.rglob(name))
