"""`make demo` runs the example, and pictures its comment where there is a browser."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.integration.html.browser import missing_browser
from tests.processes import run_python

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path):
    """Run the demo in a copy of the repository."""
    for name in ("scripts", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules"))

    def run(**environ):
        done = run_python(str(tmp_path / "scripts/demo.py"), cwd=tmp_path, **environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-2:]

    return run


def test_it_ends_with_report_and_picture(demo, tmp_path):
    if reason := missing_browser():
        pytest.skip(reason)
    assert demo() == [
        "Report:  agent-eval-report/report.html",
        "Picture: agent-eval-report/comment.png",
    ]
    picture = (tmp_path / "agent-eval-report/comment.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 860


def test_without_a_browser_it_says_how_to_get_one(demo, tmp_path):
    assert demo(PATH=str(tmp_path))[-1] == (
        "Picture: none, as there is no Chromium here; `sudo bash scripts/chromium` installs it"
    )


def test_a_driver_of_the_browser_that_does_not_start_is_no_failure(demo, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/chromium").symlink_to("/bin/true")
    driver = tmp_path / "no_driver"
    driver.write_text("#!/bin/sh\nexit 7\n")
    driver.chmod(0o755)
    line = demo(PATH=str(tmp_path / "bin"), PLAYWRIGHT_NODEJS_PATH=str(driver))[-1]
    assert line.startswith("Picture: none, as Chromium failed: ")


def test_a_browser_that_does_not_start_is_no_failure(demo, tmp_path):
    broken = tmp_path / "bin/chromium"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    line = demo(PATH=os.fspath(broken.parent))[-1]
    assert line.startswith("Picture: none, as Chromium failed: ")
