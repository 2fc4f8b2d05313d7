"""Our hook in the settings of a coding agent: in once, out again, and nothing else touched."""

from __future__ import annotations

import json

from ci_agent_eval.steering.hook import hook_settings
from ci_agent_eval.steering.hook.agent_settings import AGENT_SETTINGS
from ci_agent_eval.steering.hook.hook_settings import find_hook_commands, is_own_hook
from tests.tables import each_row

COMMAND = "agent-eval steer hook --for claude-code --enable-pytest-full-suite-steering"
OURS = {
    "matcher": "Bash|PowerShell|mcp__.*",
    "hooks": [{"type": "command", "command": COMMAND, "timeout": 40}],
}
CLAUDE = AGENT_SETTINGS["claude-code"]
IN_JSON = [each for each in AGENT_SETTINGS.values() if each.events]


def add_hook(text, command, agent=CLAUDE):
    return hook_settings.add_hook(text, command, agent)


def remove_hook(text, agent=CLAUDE):
    return hook_settings.remove_hook(text, agent)


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


def test_it_looks_as_if_written_by_hand():
    installed = add_hook(EXISTING["plain"], COMMAND)

    assert installed == (
        '{\n  "model": "opus",\n  "permissions": {"allow": ["Bash(ls:*)", "Read"]},\n'
        '  "hooks": {\n    "PreToolUse": [\n      {\n        "matcher": "Bash|PowerShell|mcp__.*",\n'
        '        "hooks": [\n          {\n            "type": "command",\n'
        f'            "command": "{COMMAND}",\n            "timeout": 40\n          }}\n'
        "        ]\n      }\n    ]\n  }\n}\n"
    )


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
    """The hook of another event measures durations, and is written by hand."""
    measuring = {"PostToolUse": [{"hooks": [{"command": COMMAND}]}], "PreToolUse": [OURS]}
    others = {"Stop": [{"hooks": [{"command": "x"}]}], "odd": {"command": COMMAND}}
    text = json.dumps({"hooks": {**measuring, **others}})

    assert json.loads(remove_hook(text)) == {"hooks": others}
    again = json.loads(add_hook(text, f"{COMMAND} --config x.yaml"))
    assert again["hooks"]["PostToolUse"] == measuring["PostToolUse"]


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
def test_each_agents_hook_goes_in_once_and_comes_out_to_the_byte(text, agent):
    installed = add_hook(text, COMMAND, agent)

    assert find_hook_commands(installed, agent) == [COMMAND] * len(agent.events)
    assert add_hook(installed, COMMAND, agent) == installed
    assert remove_hook(installed, agent) == text
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
    "before": '// mine\n{\n  "a": 1\n}\n',
    "after a member": '{\n  "a": 1, // one\n  "b": 2 // two\n}\n',
    "trailing comma": '{\n  "a": [1, 2,],\n  "b": 2,\n}\n',
    "trailing comma and comment": '{\n  "a": 1,\n  "b": 2, // two, too\n  /* end */\n}\n',
    "in hooks": '{\n  "hooks": {\n    // "BeforeTool": []\n    "AfterTool": [] // none\n  }\n}\n',
    "in a string": '{\n  "url": "https://x/*y*/", /* , */\n  "b": "\\"//"\n}\n',
    "only": "{\n  // nothing yet\n}\n",
}


@each_row("text", COMMENTED.values(), ids=COMMENTED)
def test_comments_and_trailing_commas_stay(text):
    agent = AGENT_SETTINGS["gemini"]

    installed = add_hook(text, COMMAND, agent)

    assert find_hook_commands(installed, agent) == [COMMAND]
    assert add_hook(installed, COMMAND, agent) == installed
    assert remove_hook(installed, agent) == text
    lines = [line.rstrip(",") for line in installed.splitlines()]
    assert all(line.rstrip(",") in lines or " //" in line for line in text.splitlines())
