"""What the documents show is true: code blocks run, configuration is read, outputs are real."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from ci_agent_eval.config.settings import Settings, load_settings
from ci_agent_eval.contract.stops import StopReason
from tests.processes import clean_environ, run_agent_eval, run_python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

STUB_AGENT = """
import pytest
from types import SimpleNamespace as Bag

@pytest.fixture
def agent():
    calls = [Bag(name="ask_manager", arguments={}, result="approved")]
    reply = Bag(text="Done.", calls=calls, tokens=12, cost_usd=0.001)
    return Bag(respond=lambda message: reply)
"""


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_of_the_readme_runs(number, tmp_path):
    (tmp_path / "conftest.py").write_text(STUB_AGENT)
    (tmp_path / "test_readme.py").write_text(blocks("python")[number])
    done = run_agent_eval("run", "test_readme.py", "--", "-W", "error", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 of 1 required scenario" in done.stdout


def test_python_of_the_engine_s_page_declares_what_there_is(tmp_path):
    text = "\n".join(blocks("python", (ROOT / "docs/engine.md").read_text()))
    (tmp_path / "test_page.py").write_text(text)
    done = run_python("-m", "pytest", "-q", "--collect-only", "test_page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 tests collected" in done.stdout


def test_every_way_to_end_is_on_the_engine_s_page():
    page = (ROOT / "docs/engine.md").read_text()
    assert all(f"`{reason}`" in page for reason in get_args(StopReason))


def test_the_configuration_of_the_readme_is_read_and_names_every_key(tmp_path):
    (text,) = blocks("toml")
    (tmp_path / "agent-eval.toml").write_text(text)
    settings = load_settings(root=tmp_path, environ={}, flags={})
    assert settings.budgets.total_wall_time_s.hard is False
    shown = tomllib.loads(text.replace("# comment_author", "comment_author"))
    assert set(shown) == set(Settings.model_fields)
    for table in ("gate", "budgets", "publish"):
        assert set(shown[table]) == set(type(getattr(settings, table)).model_fields), table


def test_the_workflow_of_the_readme_is_the_one_that_init_writes():
    (shown,) = blocks("yaml")
    written = (ROOT / "ci_agent_eval/app/templates/agent-eval.yml").read_text()

    def lines(text):
        return [line for line in text.splitlines() if line.strip() and "#" not in line]

    assert lines(shown) == lines(written)


def test_the_comment_in_the_readme_is_what_the_demo_leaves(tmp_path):
    (tmp_path / "examples").mkdir()
    shutil.copytree(ROOT / "examples/refund_desk", tmp_path / "examples/refund_desk")
    (tmp_path / ".git").mkdir()
    subprocess.run(
        [sys.executable, "-m", "ci_agent_eval", "run", "examples/refund_desk"],
        cwd=tmp_path,
        env=clean_environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    comment = (tmp_path / "agent-eval-report/comment.md").read_text()
    quoted = "\n".join(f"> {line}".rstrip() for line in comment.splitlines()[2:])
    assert quoted in README


def test_every_command_and_exit_code_is_in_the_readme():
    from ci_agent_eval.app.cli import EXIT_CODES, cli

    for command in set(cli.commands) - {"action"}:
        assert f"$ agent-eval {command}" in README
    codes = re.findall(r"^  (\d+) +(.+)$", EXIT_CODES, re.MULTILINE)
    assert [code for code, _ in codes] == ["0", "1", "2", "3", "130", "143"]
    for code, meaning in codes:
        assert f"| {code} | {meaning} |" in README


CONVERSATIONS = (ROOT / "docs/conversations.md").read_text()


@pytest.mark.parametrize("number", range(len(blocks("python", CONVERSATIONS))))
def test_conversations_of_their_page_pass(number, tmp_path):
    (tmp_path / "test_page.py").write_text(blocks("python", CONVERSATIONS)[number])
    done = run_python("-m", "pytest", "-q", "-W", "error", "test_page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 episode: 1 passed" in done.stdout


def test_the_conversations_page_names_all_that_a_test_holds():
    from ci_agent_eval.authoring.conversations import AgentUnderTest, ConversationState

    held = [n for n in vars(AgentUnderTest) if not n.startswith("_")]
    held += [f"conversation.{n}" for n, v in vars(ConversationState).items() if type(v) is property]
    assert held
    for name in held:
        last = name.rpartition(".")[2]
        assert f"`agent.{name}" in CONVERSATIONS or f"`.{last}`" in CONVERSATIONS, name
