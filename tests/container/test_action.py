"""The action in its container, run as GitHub's runner runs it, against GitHub's fake."""

from __future__ import annotations

import json

import pytest

from tests.builders import episode, write_run
from tests.container.conftest import HEAD
from tests.container.engine import run

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]

JUNIT = """<?xml version="1.0"?>
<testsuite name="shop" tests="2" failures="0">
  <testcase classname="tests.test_shop" name="test_good" time="0.1"/>
  <testcase classname="tests.test_shop" name="test_bad" time="0.2">
    <failure message="the refund was not booked">assert 0 == 1</failure>
  </testcase>
</testsuite>
"""


def the_one_comment(fake) -> dict:
    (comment,) = fake.shop()["comments"]
    assert comment["issue"] == 7
    return comment


def the_one_check_run(fake) -> dict:
    (check_run,) = fake.shop()["check_runs"]
    assert check_run["status"] == "completed"
    assert check_run["head_sha"] == HEAD
    return check_run


def test_run_mode_runs_the_example_and_reports_it(github, runner):
    fake = github()
    job = runner(fake)

    ran = job.step(mode="run", paths="examples/refund_desk")

    assert ran.status == 1, ran.log
    assert "refund_over_limit" in the_one_comment(fake)["body"]
    check_run = the_one_check_run(fake)
    assert check_run["conclusion"] == "failure"
    assert {"examples/refund_desk/test_refunds.py"} == {
        annotation["path"] for annotation in check_run["annotations"]
    }
    assert "refund_over_limit" in ran.summary
    assert ran.outputs["conclusion"] == "failure"
    verdict = json.loads((job.workspace / "agent-eval-report/verdict.json").read_text("utf-8"))
    assert {reason["scenario_id"] for reason in verdict["verdict"]["reasons"]} == {
        "refund_over_limit",
        "refund_by_email",
    }


def test_install_input_changes_the_suites_environment_only(github, runner):
    """The suite pins an old click; the reporter goes on with its own."""
    fake = github()
    job = runner(fake)
    wheel = job.workspace / "click"
    wheel.mkdir()
    wheel.joinpath("click.py").write_text("__version__ = '0.0.1'\n", encoding="utf-8")
    wheel.joinpath("pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
        encoding="utf-8",
    )
    wheel.joinpath("backend.py").write_text(BACKEND, encoding="utf-8")
    job.workspace.joinpath("test_pins.py").write_text(
        "import click, sys, pytest\n\n"
        "@pytest.mark.episode(scenario_id='pins', evidence='none')\n"
        "def test_pins(episode):\n"
        "    episode.check('the suite has its own pins', click.__version__ == '0.0.1')\n"
        "    episode.check('in its own environment', sys.prefix == '/opt/suite')\n",
        encoding="utf-8",
    )

    ran = job.step(mode="run", paths="test_pins.py", install="pip install --no-index ./click")

    assert ran.status == 0, ran.log


BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "click-0.0.1-py3-none-any.whl"
    info = "click-0.0.1.dist-info/"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.write("click.py")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: click\\nVersion: 0.0.1\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""


def test_the_suite_cannot_read_the_token_out_of_proc(github, runner):
    fake = github()
    job = runner(fake)
    job.workspace.joinpath("test_spy.py").write_text(
        "import pathlib, pytest\n\n"
        "@pytest.mark.episode(evidence='none')\n"
        "def test_spy(episode):\n"
        "    with pytest.raises(PermissionError):\n"
        "        pathlib.Path('/proc/1/environ').read_bytes()\n"
        "    episode.check('kept out', True)\n",
        encoding="utf-8",
    )

    ran = job.step(mode="run", paths="test_spy.py")

    assert ran.status == 0, ran.log
    assert the_one_check_run(fake)["conclusion"] == "success"


def test_a_baseline_in_the_history_is_read_by_the_image_s_git(github, runner):
    fake = github()
    job = runner(fake)
    write_run(job.workspace / "evals", episode("before"), episode("refund_by_email"))
    git = ["git", "-C", job.workspace, "-c", "user.name=t", "-c", "user.email=t@t.invalid"]
    for words in (("add", "--force", "evals"), ("commit", "--quiet", "--message=base")):
        assert run([*git, *words]).returncode == 0

    ran = job.step(mode="run", paths="examples/refund_desk", baseline="git:HEAD:evals")

    assert ran.status == 1, ran.log
    body = the_one_comment(fake)["body"]
    commit = run([*git, "rev-parse", "--short=7", "HEAD"]).stdout.strip()
    assert f"compared with 1 run of `HEAD@{commit}`" in body
    assert "1 vanished scenario: `before`" in body
