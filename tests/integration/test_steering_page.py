"""docs/steering.md: its commands answer what is shown, and it names all there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from ci_agent_eval.steering.hook.agents import AGENTS
from ci_agent_eval.steering.policy.command_extraction import PYTEST_TOOLS, SHELL_TOOLS
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, GeneralRule, SteeringSettings
from ci_agent_eval.steering.settings_loader import KEYS, parse_steering_settings
from tests.processes import run_agent_eval, run_python
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import answer

PAGE = (Path(__file__).parents[2] / "docs/steering.md").read_text()
ENABLE = "--enable-pytest-full-suite-steering"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


SHOWN = [
    shown
    for block in blocks("console")
    for shown in re.findall(r"^\$ (.+)\n((?:[^$].*\n)*)", block, re.MULTILINE)
    if "steer check" in shown[0]
]
"""Commands with what they answer."""


@each_row(("command", "answer"), SHOWN)
def test_the_command_answers_what_is_shown(command, answer, tmp_path):
    echoed, _, checked = (
        command.rpartition(" | ") if command.startswith("echo") else ("", "", command)
    )
    script = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', "
    script += f"'ci_agent_eval', *sys.argv[1:]], input={_said(echoed)!r}, text=True).returncode)"
    done = run_python("-c", script, *shlex.split(checked)[1:], cwd=tmp_path)
    assert done.stdout == answer
    assert done.returncode == (1 if answer.startswith("full suite") else 0)


def _said(echo):
    return shlex.split(echo)[1] + "\n" if echo else ""


def test_the_file_is_read_and_names_every_key_with_its_default(tmp_path):
    (text,) = blocks("yaml")
    assert all(f"\n  {key}: " in text.replace(":\n", ": \n") for key in KEYS)
    shown, default = parse_steering_settings(text, "page"), SteeringSettings()
    assert (shown.ttl, shown.priority) == (default.ttl, default.priority)
    assert default.rules.bare_directory == "targeted"
    assert shown.rules.bare_directory == "covers_testpaths"
    assert shown.dangerous == tuple(DANGEROUS_SETS)
    (rule,) = shown.general
    plain = GeneralRule("a", "b", "c")
    assert (rule.priority, rule.once) == (plain.priority, plain.once)


def test_every_agent_and_its_files_are_in_the_table():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (`\S+` \| `\S+`) \|", PAGE, re.MULTILINE))

    assert set(rows) == set(AGENTS)
    for name, settings in AGENTS.items():
        user_file = settings.get_path(None, {}, Path("~"))
        assert rows[name] == f"`{settings.get_path(Path(), {}, Path())}` | `{user_file}`"


def test_the_configuration_on_the_page_runs_the_hook():
    for block in blocks("json"):
        json.loads(block)
        (command,) = re.findall(r'"(agent-eval [^"]+)"', block)
        assert command == f"agent-eval steer hook --for claude-code {ENABLE}"


@each_row("command", ["check", "doctor", "hook", "install", "uninstall", "proxy", "stats"])
def test_every_option_of_the_command_is_on_the_page(command, tmp_path):
    shown = run_agent_eval("steer", command, "--help", cwd=tmp_path).stdout
    options = set(re.findall(r"^ +(?:-h, )?(--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}
    options |= set(re.findall(r"/ +(--[a-z-]+)", shown))
    assert options
    missing = [option for option in options if not re.search(rf"{option}\b(?!-)", PAGE)]
    assert missing == []


def test_tools_and_the_message_are_named_as_they_are():
    assert all(f"`{tool}`" in PAGE for tool in SHELL_TOOLS | PYTEST_TOOLS)
    assert DEFAULT_MESSAGE in " ".join(PAGE.replace("\n> ", " ").split())


EXAMPLES = [
    (expected, command)
    for expected, cell in re.findall(
        r"^\| (full|targeted|nothing|no) \| (`.+`) \|$", PAGE, re.MULTILINE
    )
    for command in re.findall(r"`([^`]+)`", cell)
]
"""Commands with the answers that the page gives them."""


@each_row(("expected", "command"), EXAMPLES)
def test_a_command_of_the_page_gets_the_answer_of_the_page(expected, command):
    assert answer(detect_in_text(command)) == expected


def test_the_page_has_commands_of_each_answer():
    assert len(EXAMPLES) >= 30
    assert {expected for expected, _ in EXAMPLES} == {"full", "targeted", "nothing", "no"}
