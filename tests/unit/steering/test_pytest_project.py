"""The project of a folder, as pytest itself finds it."""

from __future__ import annotations

import os
import subprocess
import sys

from ci_agent_eval.steering.pytest_project import build_project_finder, find_pytest_project
from tests.tables import each_row

CONFIGURATIONS = {
    "pytest.ini": "[pytest]\ntestpaths = tests docs\n",
    ".pytest.ini": "[pytest]\ntestpaths =\n    tests\n    docs\n",
    "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests', 'docs']\n",
    "tox.ini": "[tox]\n[pytest]\ntestpaths = tests docs\naddopts = -q %(x)s\n",
    "setup.cfg": '[metadata]\nname = x\n[tool:pytest]\ntestpaths = tests "docs"\n',
}


@each_row("name", CONFIGURATIONS)
def test_testpaths_are_read_from_each_configuration_file(name, tmp_path):
    (tmp_path / name).write_text(CONFIGURATIONS[name])

    project = find_pytest_project(tmp_path)

    assert project.folder == project.root == str(tmp_path)
    assert project.testpaths == (f"{tmp_path}/tests", f"{tmp_path}/docs")


ROOTS = """
import os, sys, pytest

class Root:
    def pytest_configure(self, config): print(f"root={config.rootpath}")

for folder in sys.argv[1:]:
    os.chdir(folder)
    pytest.main(["-p", "no:cacheprovider", "--co", "-qq"], [Root()])
"""


def test_pytest_finds_the_same_root(tmp_path):
    folders = [tmp_path / name / "src/deep" for name in CONFIGURATIONS]
    for name, inner in zip(CONFIGURATIONS, folders, strict=True):
        inner.mkdir(parents=True)
        (tmp_path / name / "setup.cfg").write_text("[metadata]\n")
        text = CONFIGURATIONS[name].replace("addopts = -q %(x)s", "")
        (tmp_path / name / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", ROOTS, *folders],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    projects = [find_pytest_project(inner) for inner in folders]

    assert [project.root for project in projects] == [
        str(tmp_path / name) for name in CONFIGURATIONS
    ]
    roots = [line.removeprefix("root=") for line in done.stdout.splitlines() if "root=" in line]
    assert roots == [project.root for project in projects], done.stderr
    # pytest ignores testpaths outside of its root.
    assert all(project.testpaths == () for project in projects)


def test_tables_of_newer_pytest_are_read(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\ntestpaths = ['tests']\n")
    assert find_pytest_project(tmp_path).testpaths == (f"{tmp_path}/tests",)
    (tmp_path / "pytest.toml").write_text("[pytest]\ntestpaths = ['docs']\n")
    assert find_pytest_project(tmp_path).testpaths == (f"{tmp_path}/docs",)


@each_row("marker", ["setup.py", "pyproject.toml", ".git"])
def test_without_a_configuration_the_root_has_a_marker(marker, tmp_path):
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / marker).write_text("")

    assert find_pytest_project(inner).root == str(tmp_path / "a")


@each_row(
    "text",
    ["[pytest", "[pytest]\ntestpaths = 'tests\n", "[pytest]\n", "", "\0", "[pytest]\ntestpaths\n"],
)
def test_a_configuration_that_cannot_be_read_has_no_testpaths(text, tmp_path):
    (tmp_path / "pytest.ini").write_text(text)

    assert find_pytest_project(tmp_path).testpaths == ()


def test_folders_are_relative_to_the_base_or_absolute(tmp_path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web/pytest.ini").write_text("")
    find = build_project_finder(tmp_path)

    assert find("web") == find(f"{tmp_path}/web")
    assert find("web").root == f"{tmp_path}/web"
    assert find("none") is find("~nobody/x") is find("a\0b") is None
