"""The hook as a coding agent runs it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from tests.integration.steering.hook_events import run_hook


@pytest.fixture
def hook(tmp_path):
    """Run the hook; the memory of all of a test's runs is the same file."""
    return functools.partial(run_hook, tmp_path)


@pytest.fixture
def hook_process(tmp_path):
    """Run the hook in a process of its own."""

    def run(event, *options, **environ):
        return subprocess.run(
            [sys.executable, "-m", "ci_agent_eval", "steer", "hook", *options],
            input=json.dumps(event).encode(),
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **environ},
            capture_output=True,
            check=False,
            timeout=600,
        )

    return run
