"""The interpreter of a suite: its own plugin, a lent one, or a reason why neither is possible."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.runner.interpreter import (
    Interpreter,
    find_suite_python,
    inspect_interpreter,
    provide_plugin,
)


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory) -> str:
    """An interpreter with pytest and pydantic, but without this package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    # The packages are borrowed from the outer environment by a .pth file, this one left out.
    site = next(folder.glob("lib/python*/site-packages"))
    for entry in Path(pytest.__file__).parent.parent.iterdir():
        if "ci_agent_eval" not in entry.name and not entry.name.endswith(".pth"):
            (site / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")


def test_another_name_of_our_interpreter_starts_no_process(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("no program")
    (tmp_path / "python3").symlink_to("python")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    found = inspect_interpreter(str(tmp_path / "python"), {})
    assert found.version == sys.version_info[:2]


def test_the_configured_interpreter_comes_before_the_active_environments():
    assert find_suite_python({"AGENT_EVAL_PYTHON": "/p", "VIRTUAL_ENV": "/v"}) == "/p"
    assert find_suite_python({"VIRTUAL_ENV": "/v"}) == "/v/bin/python"
    assert find_suite_python({}) == sys.executable


def test_an_interpreter_without_the_plugin_is_lent_it_and_nothing_else(run, bare_venv, environ):
    interpreter = inspect_interpreter(bare_venv, environ)
    assert not interpreter.has_plugin
    with provide_plugin(interpreter) as (name, lent):
        assert name == "ci_agent_eval.pytest_plugin"
        assert lent is not None
        assert [path.name for path in lent.iterdir()] == ["ci_agent_eval"]
    tests = (
        "def test_one(episode):\n"
        "    with episode.turn('hello') as turn: turn.reply('hello')\n"
        "    episode.check('a', True)\n"
    )
    ran = run(python=bare_venv, tests=tests)
    assert ran.exit_status == 0, run.output
    assert run.results.episodes[0].assertions[0].file == "test_suite.py"


def test_ones_own_interpreter_is_not_started_to_be_asked(environ):
    assert inspect_interpreter(sys.executable, environ).packages["pytest"] == pytest.__version__


def test_an_installed_plugin_is_loaded_without_autoload_too(run):
    ran = run(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert ran.progress.finished == 3, run.output


@pytest.mark.parametrize(
    ("version", "packages", "sentence"),
    [
        ((3, 9), {}, "is Python 3.9; the plugin needs 3.11 or newer"),
        ((3, 11), {"pytest": None}, "has no pytest; install ci-agent-eval[pytest] there"),
        ((3, 11), {"pydantic": None}, "has no pydantic; install"),
        ((3, 11), {"pytest": "7.4.0"}, "has pytest 7.4.0; the plugin needs 8 or newer"),
        ((3, 11), {"pydantic": "1.10.26"}, "has pydantic 1.10.26; the plugin needs 2 or newer"),
    ],
)
def test_an_interpreter_that_cannot_run_suites_says_why(version, packages, sentence):
    all_packages = {"ci-agent-eval": None, "pytest": "9.0", "pydantic": "2.12", **packages}
    with pytest.raises(InputError) as raised:
        Interpreter("/venv/bin/python", version, all_packages).require_suite_support()
    assert sentence in str(raised.value)


def test_an_interpreter_that_is_none(run, tmp_path):
    with pytest.raises(InputError, match="cannot run the suite"):
        run(python=str(tmp_path / "no-python"))
