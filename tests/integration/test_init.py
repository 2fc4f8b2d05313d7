"""`agent-eval init`: the files fit the project, and nothing that exists is changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.processes import run_agent_eval

WORKFLOW = ".github/workflows/agent-eval.yml"
AGENTS = "from agents import Agent\nfaq = Agent(name='faq')\ntriage = Agent(name='triage')\n"
OPENAI = {"requirements.txt": "openai-agents>=0.2\n"}
EXTRA = "[project.optional-dependencies]\ntest = ['x']"
CHECKS = "[tool.pytest.ini_options]\ntestpaths = ['checks']\n"

UV = """[project]
name = 'desk'
dependencies = ['openai-agents', 'bank']
[dependency-groups]
tests = ['x']
[tool.uv.sources]
bank = {workspace = true}
"""

CASES = {
    # what is: (files of the project, the folder below the repository)
    "an empty repository": ({}, ""),
    "files of the author": ({WORKFLOW: "mine"}, ""),
    "another workflow": ({".github/workflows/ci.yml": "- run: agent-eval run"}, ""),
    "an agent of a framework": ({**OPENAI, "desk/main.py": AGENTS}, ""),
    "a flat project with pytest's settings": ({"desk.py": "", "pyproject.toml": CHECKS}, ""),
    "a project": ({"pyproject.toml": ""}, ""),
    "a project with an extra": ({"pyproject.toml": EXTRA}, ""),
    "a project with a group": ({"pyproject.toml": "[dependency-groups]\ndev = ['x']"}, ""),
    "a folder of a larger repository": ({"services/desk/pyproject.toml": CHECKS}, "services/desk"),
    "a project of uv": ({"uv.lock": "", "pyproject.toml": UV}, ""),
    "a member of uv's workspace": (
        {"uv.lock": "", "services/desk/pyproject.toml": UV, "services/desk/src/desk.py": AGENTS},
        "services/desk",
    ),
    "sources of uv without a lock": ({"pyproject.toml": UV, "requirements.txt": "x"}, ""),
    "a project file that cannot be read": ({"pyproject.toml": "[project"}, ""),
}


def make_repository(root: Path, files: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(root)], check=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def read_files(root: Path) -> dict[str, str]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: found[name].read_text() for name in sorted(found) if not name.startswith(".git/")}


def describe(name: str, root: Path, shown: dict[str, str]) -> str:
    """What the command says of a project, the files that it writes, and that it writes them once."""
    files, folder = CASES[name]
    make_repository(root, files)
    done = run_agent_eval("init", cwd=root / folder)
    parts = [f"# {name}: exit {done.returncode}\n\n{done.stdout}{done.stderr}"]
    written = read_files(root)
    assert {kept: written[kept] for kept in files} == files
    for new in sorted(written.keys() - files.keys()):
        first = shown.setdefault(written[new], name)
        parts.append(
            f"## {new}\n\n{written[new]}" if first == name else f"## {new}: as for {first}\n"
        )
    again = run_agent_eval("init", cwd=root / folder)
    assert (again.returncode, "wrote" in again.stdout) == (done.returncode, False)
    assert read_files(root) == written
    return "\n".join(parts).replace(str(root), "/repository")


def test_what_is_said_and_written_is_the_golden_text(golden, tmp_path):
    shown: dict[str, str] = {}
    texts = [describe(name, tmp_path / str(at), shown) for at, name in enumerate(CASES)]
    golden("setup/init.txt", "\n".join(texts))


def test_first_files_make_a_suite_that_passes(agent_eval, tmp_path):
    make_repository(tmp_path, {})
    agent_eval("init")
    assert agent_eval("run", "tests/episodes").returncode == 0


def test_outside_of_a_repository_nothing_is_written(agent_eval, tmp_path):
    done = agent_eval("init")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "is in no git repository" in done.stderr
