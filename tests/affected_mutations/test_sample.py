"""The selection misses nothing in a sample of the mutations: `make affected-mutations-sample`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.affected_mutations
@pytest.mark.timeout(7200)  # minutes on two idle cores
def test_no_changed_scenario_is_missed():
    # Three versions of Python that follow each other measure all kinds together.
    sample = ["--sample", "40", "--offset", str(sys.version_info.minor)]
    command = [sys.executable, "-m", "tests.affected_mutations", *sample]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 mutations, nothing missed" in done.stdout
