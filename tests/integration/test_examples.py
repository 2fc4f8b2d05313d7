"""The examples do what their READMEs say, offline."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.integration.test_cli import clean_environ

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_banking_replays_without_a_key(tmp_path):
    shutil.copytree(EXAMPLES / "banking", tmp_path / "banking")
    environ = {k: v for k, v in clean_environ().items() if not k.startswith("OPENAI")}
    done = subprocess.run(
        [sys.executable, "-m", "ci_agent_eval", "run", "banking"],
        cwd=tmp_path,
        env=environ | {"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    calls = verdict["summary"]["calls"]
    assert (calls["live"], calls["replayed"], calls["scripted"]) == (0, 8, 0)
    assert verdict["counts"]["episodes"]["passed"] == 3
