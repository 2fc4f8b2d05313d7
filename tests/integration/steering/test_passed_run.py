"""The result of an earlier full run: recorded by the plugin, offered by the steering message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.pytest_plugin.options import STEERING_FILE
from ci_agent_eval.steering.affected import advice
from ci_agent_eval.steering.affected.advice import find_advice
from ci_agent_eval.steering.locations import CONFIG_NAME
from ci_agent_eval.steering.passed_run import (
    CACHE_FILE,
    PassedRun,
    RunConditions,
    load_passed_run,
)
from ci_agent_eval.steering.policy.detection import detect_in_text

CONDITIONS = RunConditions("t", "e", ())
RUN = PassedRun(CONDITIONS, "/bin", 2, 12.34, 1000.0)


class PytestProject:
    """A committed project with two tests and steering switched on."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            "GIT_CONFIG_GLOBAL": os.devnull,
        }  # fmt: skip
        (folder / "app").mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / ".gitignore").write_text("__pycache__/\n")
        (folder / "prices.py").write_text("PRICE = 1\n")
        (folder / "test_prices.py").write_text(
            "import prices\ndef test_a(): pass\ndef test_b(): assert prices.PRICE == 1\n"
        )
        self.switch("true")
        self.git("init", "--initial-branch=main")
        self.commit()

    def switch(self, enabled):
        text = f"session: {{pytest_full_suite_steering_enabled: {enabled}}}\n"
        (self.folder / "agent-eval-steering.yaml").write_text(text)

    def git(self, *words):
        subprocess.run(
            ["git", *words], cwd=self.folder, env=self.environ, check=True, capture_output=True
        )

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--message=x")

    def test(self, *arguments, code=0, folder=".", **variables):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:randomly", *arguments],
            cwd=self.folder / folder,
            env=self.environ | variables,
            capture_output=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == code, done.stdout.decode()

    def offer(self, command="pytest", folder="."):
        result = detect_in_text(command)
        return find_advice(self.folder / folder, self.environ, result).passed


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(advice, "TIME_LIMIT_S", 60.0)
    return PytestProject(tmp_path)


def test_the_same_run_on_the_same_files_is_offered(project):
    project.test("-q")

    offered = project.offer("uv run pytest -x | tail -5")
    assert offered.startswith("The same run passed ")
    assert " on the same files (2 tests in " in offered
    assert project.offer("pytest --ignore=app") is None
    assert project.offer("cd app && pytest") is None
    assert project.offer(folder="app") is None


@pytest.mark.parametrize(
    "command", ["pytest -qx -n 4 --tb=short", "python -m pytest -p no:randomly --durations 5"]
)
def test_an_equal_run_is_offered_with_other_output_and_workers(project, command):
    project.test("-vs", "--maxfail=1")

    assert project.offer(command) is not None


@pytest.mark.parametrize(
    "options",
    ["--sw", "-W error", "--runxfail", "-o xfail_strict=true", "-p no:doctest", "$OPTIONS"],
)
def test_a_run_whose_options_may_change_the_outcome_is_not_offered(project, options):
    project.test()

    assert project.offer(f"pytest {options}") is None


@pytest.mark.parametrize(
    "command",
    [
        "CI=1 pytest",
        "env CI=1 pytest",
        "export CI=1; pytest",
        "CI=1 bash -c pytest",
        "unset CI; pytest",
        "source .env && pytest",
        "docker exec web pytest",
        "ssh host pytest",
        "sudo pytest",
        "uv run --python 3.12 pytest",
        "python -O -m pytest",
        "python3.12 -m pytest",
        "other/bin/pytest",
    ],
)
def test_a_run_in_another_environment_is_not_offered(project, command):
    project.test()

    assert project.offer() is not None
    assert project.offer(command) is None


def test_a_run_in_the_same_environment_is_offered(project):
    project.test()
    programs = Path(sys.executable).parent

    for command in (
        "source .venv/bin/activate && timeout 60 pytest",
        "bash -lc 'pytest -q'",
        f"{programs}/pytest",
        f"{programs}/python -m pytest",
    ):
        assert project.offer(command) is not None, command


@pytest.mark.parametrize("name", ["CI", "TZ", "PYTHONOPTIMIZE", "DJANGO_SETTINGS_MODULE"])
def test_a_run_with_other_variables_is_not_offered(project, name):
    project.environ.pop(name, None)
    project.test(**{name: "1"})

    assert project.offer() is None
    project.environ[name] = "1"
    assert project.offer() is not None


def test_a_changed_file_ends_the_offer_and_a_commit_does_not(project):
    (project.folder / "prices.py").write_text("PRICE = 1  # checked\n")
    (project.folder / "new.txt").write_text("x")
    project.test()
    assert project.offer() is not None

    project.commit()
    assert project.offer() is not None
    (project.folder / "new.txt").write_text("y")
    assert project.offer() is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["test_prices.py"], 0),
        (["--co"], 0),
        (["-k", "a"], 0),
        (["--bad"], 4),
        (["--sw"], 0),
        (["-W", "error"], 0),
        (["--runxfail"], 0),
        (["--strict-markers"], 0),
        (["--noconftest"], 0),
        (["-o", "xfail_strict=true"], 0),
        (["-p", "no:doctest"], 0),
    ],
)
def test_other_runs_are_not_recorded(project, arguments, code):
    project.test(*arguments, code=code)

    assert not (project.folder / CACHE_FILE).exists()


@pytest.mark.parametrize("addopts", ["--sw", "--lf", "-m 'not slow'"])
def test_a_run_that_the_configuration_narrows_is_not_recorded(project, addopts):
    (project.folder / "pytest.ini").write_text(f"[pytest]\naddopts = {addopts}\n")
    project.test("-n", "2")

    assert not (project.folder / CACHE_FILE).exists()


def test_a_run_with_a_deselected_test_is_not_recorded(project):
    (project.folder / "conftest.py").write_text(
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=[items.pop()])\n"
    )
    project.test()

    assert not (project.folder / CACHE_FILE).exists()


def test_a_run_without_a_cache_passes(project):
    project.test("-p", "no:cacheprovider")

    assert project.offer() is None


def test_a_record_that_cannot_be_written_does_not_fail_the_run(project):
    project.test()
    (project.folder / CACHE_FILE).unlink()
    (project.folder / CACHE_FILE).parent.rmdir()
    (project.folder / CACHE_FILE).parent.touch()
    (project.folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    project.test()

    assert project.offer() is None


def test_after_steer_install_a_passed_run_is_offered(project):
    (project.folder / CONFIG_NAME).unlink()
    done = subprocess.run(
        [sys.executable, "-m", "ci_agent_eval", "steer", "install", "--for", "claude-code"],
        cwd=project.folder,
        env=project.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert f"{CONFIG_NAME}: new settings" in done.stdout
    project.test()

    assert project.offer() is not None


def test_a_run_that_failed_is_not_recorded(project):
    (project.folder / "prices.py").write_text("PRICE = 2\n")
    project.test(code=1)

    assert project.offer() is None


def test_a_run_that_changed_a_file_is_not_recorded(project):
    (project.folder / "test_write.py").write_text(
        "import pathlib\ndef test(): pathlib.Path('prices.py').write_text('PRICE = 1')\n"
    )
    project.test("-p", "no:xdist")

    assert not (project.folder / CACHE_FILE).exists()


def test_a_project_without_steering_gets_no_record(project):
    project.switch("false")
    project.test()

    assert not (project.folder / CACHE_FILE).exists()


def test_the_plugin_looks_for_the_file_that_steering_reads():
    assert STEERING_FILE == CONFIG_NAME


def test_workers_of_xdist_count_once(project):
    project.test("-n", "2")

    assert "(2 tests in " in project.offer()


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (1000.0, "The same run passed less than a minute ago on the same files (2 tests in 12.3 s)."),
        (1090.0, "The same run passed 1 minute ago on the same files (2 tests in 12.3 s)."),
        (1000.0 + 86_401, None),
        (999.0, None),
    ],
)  # fmt: skip
def test_an_old_result_is_not_offered(now, expected):
    assert RUN.describe(CONDITIONS, now) == expected


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"tree": 1}', "[" * 9000, json.dumps({**RUN.to_json(), "passed": "x"})]
)  # fmt: skip
def test_a_record_that_is_none_is_ignored(tmp_path, content):
    path = tmp_path / CACHE_FILE
    path.parent.mkdir(parents=True)
    path.write_text(content)

    assert load_passed_run(tmp_path) is None
    path.write_text(json.dumps(RUN.to_json()))
    assert load_passed_run(tmp_path) == RUN
