"""The example with the refund desk: a copy of it, its mended version, and a run of each."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.processes import run_agent_eval

ROOT = Path(__file__).parents[2]


def copy_desk(folder: Path) -> Path:
    """Copy the example, to run and to mend."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT / "examples/refund_desk", folder / "desk", ignore=ignored))


def mend(desk: Path):
    agent = desk / "agent.py"
    text = agent.read_text()
    text = text.replace(' and "urgent" not in message', "")
    text = text.replace(
        'orders = [self._use(reply, "lookup_order", order_id=order_id) for order_id in ids]',
        'orders = [self._use(reply, "lookup_order", order_id=ids[-1])]',
    )
    agent.write_text(text)


def verdict(folder: Path):
    return json.loads((folder / "agent-eval-report/verdict.json").read_text())


@dataclass(frozen=True)
class DeskRun:
    """A finished run of the example; tests that change its files copy them first."""

    process: subprocess.CompletedProcess[str]
    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "agent-eval-report"

    def copy_to(self, folder: Path, *, name: str = "agent-eval-report") -> str:
        """Copy the report into the folder, and return its name there."""
        shutil.copytree(self.report, folder / name)
        return name


def run_desk(folder: Path, *, mended: bool) -> DeskRun:
    desk = copy_desk(folder)
    if mended:
        mend(desk)
    return DeskRun(run_agent_eval("run", "desk", cwd=folder), folder)
