"""The hook as a coding agent runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def hook(tmp_path):
    """Run the hook in a process; the memory of all of a test's runs is the same file."""

    def run(event, *options, **environ):
        given = event if isinstance(event, bytes) else json.dumps(event).encode()
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYTEST_FULL_SUITE", "CLAUDE_"))
        }
        return subprocess.run(
            [sys.executable, "-m", "ci_agent_eval", "steer", "hook", *options],
            input=given,
            cwd=tmp_path,
            env={**kept, "XDG_STATE_HOME": str(tmp_path / "state"), **environ},
            capture_output=True,
            check=False,
            timeout=600,
        )

    return run
