"""Packages with extensions on the path of this process: a module, and metadata as pip writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest


class Packages:
    """A folder of packages at the start of `sys.path`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(folder)

    def add(self, name: str, code: str, **groups: str) -> None:
        """Add a package with one module; `checks="Short"` is an entry point of this name."""
        module = name.replace("-", "_")
        self._monkeypatch.delitem(sys.modules, module, raising=False)
        (self._folder / f"{module}.py").write_text(dedent(code))
        metadata = self._folder / f"{module}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = [
            f"[ci_agent_eval.{group}]\n"
            + "".join(f"{one} = {module}:{one}\n" for one in names.split())
            for group, names in groups.items()
        ]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
