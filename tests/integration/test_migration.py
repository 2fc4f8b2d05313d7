"""The page on migration is true: its files are written, its commands run, its outputs seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ci_agent_eval.opik import decorators
from ci_agent_eval.pytest_plugin.opik.experiment_options import SETTINGS
from tests.processes import clean_environ

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/migration.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def write(folder, text):
    """Write a block into the file that its first line names; a later one replaces it."""
    name = text.partition("\n")[0].removeprefix("# ")
    assert re.fullmatch(r"[\w-]+\.(py|toml)", name), "a block begins with the name of its file"
    (folder / name).write_text(text)
    if name.endswith(".toml"):
        tomllib.loads(text)


def run(folder, text):
    """Run the commands of a block; each line below a command is in what it prints."""
    environ = clean_environ(PYTHONPATH=str(folder), OPIK_CONFIG_PATH=str(folder / "none"))
    binaries = str(Path(sys.executable).parent)
    environ["PATH"] = os.pathsep.join([binaries, os.environ["PATH"]])
    for command, *shown in (part.splitlines() for part in text.split("$ ")[1:]):
        done = subprocess.run(
            command.split(),
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for line in shown:
            pattern = re.escape(line).replace(r"\*", ".*")
            assert re.search(rf"^{pattern}$", done.stdout, re.MULTILINE), (line, done.stdout)


def test_the_page_does_what_it_says(tmp_path):
    for language, text in BLOCKS:
        if language == "console":
            run(tmp_path, text)
        else:
            write(tmp_path, text)


def test_the_page_has_no_block_of_another_kind():
    assert {language for language, _ in BLOCKS} == {"python", "console", "toml"}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.ini)
def test_every_setting_is_in_the_table(setting):
    variable = f"`{setting.variable}`" if setting.variable else ""
    (row,) = [line for line in PAGE.splitlines() if f"| `{setting.option}` |" in line]
    _, _, option, environment, ini, default, _ = (cell.strip() for cell in row.split("|"))
    assert (option, environment) == (f"`{setting.option}`", variable)
    assert ini == f"`{setting.ini}`"
    assert default == (f"`{setting.default}`" if setting.default else default)


def test_every_name_of_the_bridge_is_on_the_page():
    for name in decorators.__all__:
        assert name in PAGE
