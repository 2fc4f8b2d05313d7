"""Our hook in the settings of a coding agent: in once, out again, and no other setting touched."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook import install
from ci_agent_eval.steering.hook.agents import AGENTS
from ci_agent_eval.steering.hook.install import find_hooks, is_own_hook
from tests.tables import each_row

COMMAND = "agent-eval steer hook --for claude-code --enable-pytest-full-suite-steering"
OURS = {
    "matcher": "Bash|PowerShell|mcp__.*",
    "hooks": [{"type": "command", "command": COMMAND, "timeout": 40}],
}
CLAUDE = AGENTS["claude-code"]
IN_JSON = [each for each in AGENTS.values() if each.entry]


def add_hook(text, command, agent=CLAUDE):
    return install.add_hook(text, command, agent)


def remove_hook(text, agent=CLAUDE):
    return install.remove_hook(text, agent)


EXISTING = {
    "plain": '{\n  "model": "opus",\n  "permissions": {"allow": ["Bash(ls:*)", "Read"]}\n}\n',
    "tabs": '{\n\t"a": 1.50,\n\t"b": [ 1,2 ]\n}',
    "windows": '{\r\n    "a": "é",\r\n    "b": "\\u00e9"\r\n}\r\n',
    "one line": '{"a": 1, "b": {"c": 1e5}}',
    "spaces before": '\n\n  {"a": 1}\n',
    "other events": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": []}\n    ]\n  }\n}\n',
    "other hooks": """{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [ { "type": "command", "command": "agent-eval steer check" } ]
      }
    ],
    "PostToolUse": []
  },
  "z": null
}
""",
    "one line with hooks": '{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x"}]}]}}',
    "odd groups": '{\n  "hooks": {"PreToolUse": [7, "x", {}, {"hooks": {}}, {"hooks": [1]}]}\n}\n',
}


def test_a_hook_that_somebody_put_into_a_group_of_theirs_comes_out_alone():
    text = json.dumps(
        {
            "hooks": {
                "PreToolUse": [{"hooks": [{"command": "x"}, OURS["hooks"][0], {"command": "y"}]}]
            }
        }
    )

    left = json.loads(remove_hook(text))

    assert left == {"hooks": {"PreToolUse": [{"hooks": [{"command": "x"}, {"command": "y"}]}]}}


def test_ours_come_out_of_all_events_and_stay_there_when_installed_again():
    """The hook of another event was written by hand."""
    elsewhere = {"PostToolUse": [{"hooks": [{"command": COMMAND}]}], "PreToolUse": [OURS]}
    others = {"Stop": [{"hooks": [{"command": "x"}]}], "odd": {"command": COMMAND}}
    text = json.dumps({"hooks": {**elsewhere, **others}})

    assert json.loads(remove_hook(text)) == {"hooks": others}
    again = json.loads(add_hook(text, f"{COMMAND} --config x.yaml"))
    assert again["hooks"]["PostToolUse"] == elsewhere["PostToolUse"]


@each_row(
    ("command", "expected"),
    [
        (COMMAND, True),
        ("/opt/x/bin/agent-eval steer hook", True),
        ("'/opt/a b/agent-eval' steer hook --for claude-code", True),
        ("agent-eval steer check", False),
        ("echo agent-eval steer hook", False),
        ("my-agent-eval steer hook", False),
        ("'", False),
        ("", False),
        (7, False),
        (None, False),
    ],
)
def test_ours_is_known_by_what_it_runs(command, expected):
    assert is_own_hook(command) is expected


@each_row("agent", IN_JSON, ids=lambda agent: agent.name)
@each_row("text", EXISTING.values(), ids=EXISTING)
def test_each_agents_hook_goes_in_once_and_comes_out_again(text, agent):
    installed = add_hook(text, COMMAND, agent)

    assert find_hooks(installed, agent) == [COMMAND] * len(agent.events)
    assert add_hook(installed, COMMAND, agent) == installed
    assert json.loads(remove_hook(installed, agent)) == json.loads(text)
    hooks = json.loads(installed)["hooks"]
    assert all(hooks[event][-1] == agent.build_entry(COMMAND) for event in agent.events)


@each_row("agent", IN_JSON, ids=lambda agent: agent.name)
def test_a_new_file_is_complete(agent):
    installed = json.loads(add_hook("", COMMAND, agent))

    assert set(installed["hooks"]) == set(agent.events)
    assert {key: installed[key] for key in agent.initial} == dict(agent.initial)


@each_row("agent", IN_JSON, ids=lambda agent: agent.name)
def test_the_agent_waits_longer_than_the_tests_are_counted(agent):
    entry = agent.build_entry(COMMAND)
    (hook,) = entry.get("hooks", [entry])
    unit = 1000 if agent.name in {"gemini", "qwen-code"} else 1

    assert hook.get("timeout", hook.get("timeoutSec")) >= 30 * unit


COMMENTED = {
    "comment": '// mine\n{\n  "a": "https://x/*y*/" /* , */\n}\n',
    "trailing comma": '{\n  "a": [1, 2,],\n  "b": ",}",\n}\n',
}


@each_row("text", COMMENTED.values(), ids=COMMENTED)
def test_a_file_with_comments_is_read_and_the_edit_left_to_its_owner(text):
    agent = AGENTS["gemini"]
    entry = json.dumps({"BeforeTool": [agent.build_entry(COMMAND)]})
    with pytest.raises(InputError, match="would be lost; add this by hand: ") as refused:
        add_hook(text, COMMAND, agent)
    assert entry in str(refused.value)
    assert remove_hook(text, agent) == text

    installed = text.replace("{", f'{{"hooks": {entry}, ', 1)
    assert find_hooks(installed, agent) == [COMMAND]
    assert add_hook(installed, COMMAND, agent) == installed
    with pytest.raises(InputError, match="remove the hooks with `agent-eval steer hook` by hand"):
        remove_hook(installed, agent)
