"""What the doctor copies of the settings: the hook, trust and switches of hooks only."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from ci_agent_eval.steering.doctor.agent_launch import LAUNCHES
from ci_agent_eval.steering.doctor.throwaway import make_place
from ci_agent_eval.steering.hook.agent_settings import AGENT_SETTINGS
from ci_agent_eval.steering.hook.install import build_hook_command, install_hook

COMMAND = build_hook_command(Path(sys.executable).with_name("agent-eval"), "x", {})
SECRET = "SECRET"
OTHER = {"type": "command", "command": SECRET, "bash": SECRET, "env": {"KEY": SECRET}}
DOCUMENT = {
    "disableAllHooks": False,
    "env": {"KEY": SECRET},
    "mcpServers": {"x": {"env": {"KEY": SECRET}}},
    "copilot_tokens": {"x": SECRET},
    "awsAuthRefresh": SECRET,
    "awsCredentialExport": SECRET,
    "statusLine": {"type": "command", "command": SECRET},
    "notify": [SECRET],
}
CONFIG = """
experimental_bearer_token = "SECRET"
notify = ["SECRET"]
[features]
hooks = true
other = "SECRET"
[mcp_servers.x]
env = { KEY = "SECRET" }
[otel]
headers = { KEY = "SECRET" }
[model_providers.x]
experimental_bearer_token = "SECRET"
[[hooks.PreToolUse]]
hooks = [{ type = "command", command = "SECRET" }]
"""


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "root", tmp_path / "user"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(name, folders):
    return make_place(LAUNCHES[name], AGENT_SETTINGS[name], *folders)


def read_all(place):
    files = [path for path in place.project.parent.rglob("*") if path.is_file()]
    return {path.name: path.read_text() for path in files}


@pytest.mark.parametrize("name", [name for name in LAUNCHES if name != "opencode"])
def test_credentials_and_other_commands_are_not_copied(folders, name):
    agent, launch = AGENT_SETTINGS[name], LAUNCHES[name]
    (event,) = agent.events
    own = agent.build_entry(COMMAND)
    mixed = {**own, "hooks": [OTHER, *own["hooks"]]} if "hooks" in own else own
    hooks = {event: [OTHER, {"hooks": [OTHER]}, mixed], "Stop": [{"hooks": [OTHER]}]}
    for folder, files in zip(folders, (launch.project_files, launch.user_files), strict=True):
        for file in files:
            is_json = not file.endswith(".toml") and "trusted" not in file
            text = json.dumps({**DOCUMENT, "hooks": hooks}) if is_json else ""
            write(folder / file, CONFIG if file.endswith(".toml") else text or "{}")

    with copy(name, folders) as place:
        texts = read_all(place)
        copied = json.loads((place.project / agent.project_file).read_text())

    assert len(texts) > 1
    assert not [name for name, text in texts.items() if SECRET in text]
    assert place.problems == ()
    assert copied["disableAllHooks"] is False
    assert list(copied["hooks"]) == [event]
    first, group, last = copied["hooks"][event]
    assert first == {"type": "command", "bash": "true"}
    assert group == {"hooks": [first]}
    assert last == ({**own, "hooks": [first, *own["hooks"]]} if "hooks" in own else own)


@pytest.mark.parametrize(
    "change",
    [
        {"command": f"{COMMAND}; touch x"},
        {"command": COMMAND, "bash": "touch x"},
        {"command": "agent-eval steer hook"},
        {"command": [COMMAND]},
    ],
)
def test_a_hook_with_another_command_does_nothing_in_the_copy(folders, change):
    hook = {"hooks": {"PreToolUse": [{"matcher": "Bash", "command": "x", "hooks": [change]}]}}
    write(folders[0] / ".claude/settings.local.json", json.dumps(hook))

    with copy("claude-code", folders) as place:
        copied = json.loads((place.project / ".claude/settings.local.json").read_text())

    ((group,),) = copied["hooks"].values()
    assert group["matcher"] == "Bash"
    assert group["hooks"][0].get("command", "true") == "true"
    assert group["hooks"][0].get("bash", "true") == "true"
    assert set(group) == {"matcher", "hooks"}


def test_the_environment_of_our_hook_is_not_copied(folders):
    hook = {"type": "command", "command": COMMAND, "env": {"PYTHONPATH": "x"}, "timeout": 40}
    hook |= {"commandWindows": "x", "powershell": "x", "cwd": "x"}
    document = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}}
    write(folders[0] / ".codex/hooks.json", json.dumps(document))

    with copy("codex", folders) as place:
        copied = json.loads((place.project / ".codex/hooks.json").read_text())

    expected = {"type": "command", "command": COMMAND, "timeout": 40}
    assert copied == {"hooks": {"PreToolUse": [{"hooks": [expected]}]}}


def test_trust_in_the_project_applies_to_the_throwaway_one(folders):
    root, user = folders
    state = "pre_tool_use:1:0"
    config = f"""{CONFIG}
[hooks.state."{root}/.codex/hooks.json:{state}"]
trusted_hash = "sha256:1"
[hooks.state."{user}/hooks.json:{state}"]
enabled = false
[projects."{root}"]
trust_level = "trusted"
[projects."/other \\"é"]
trust_level = "untrusted"
"""
    write(user / "config.toml", config)
    write(user / "trustedFolders.json", json.dumps({str(root): "TRUST_FOLDER"}))
    write(user / "config.json", f'// mine\n{{"trusted_folders": ["{root}", "/b"], "x": 1,}}')

    with copy("codex", folders) as place:
        codex = tomllib.loads((place.home / ".codex/config.toml").read_text())
        project = str(place.project)
        home = str(place.home)
    with copy("gemini", folders) as place:
        gemini = json.loads((place.home / ".gemini/trustedFolders.json").read_text())
        assert gemini == {str(place.project): "TRUST_FOLDER"}
    with copy("copilot", folders) as place:
        copilot = json.loads((place.home / ".copilot/config.json").read_text())
        assert copilot == {"trusted_folders": [str(place.project), "/b"]}

    assert codex == {
        "features": {"hooks": True},
        "hooks": {
            "state": {
                f"{project}/.codex/hooks.json:{state}": {"trusted_hash": "sha256:1"},
                f"{home}/.codex/hooks.json:{state}": {"enabled": False},
            }
        },
        "projects": {
            project: {"trust_level": "trusted"},
            '/other "é': {"trust_level": "untrusted"},
        },
    }


@pytest.mark.parametrize(
    ("name", "file", "text", "reason"),
    [
        ("codex", "config.toml", 'notify = ["SECRET"', "Unclosed array"),
        ("copilot", "config.json", '{"copilot_tokens": "SECRET"', "Expecting"),
        ("copilot", "settings.json", "[]", "is no JSON object"),
        ("claude-code", "settings.json", "\udcff", "codec"),
        ("claude-code", "settings.json", "[" * 100_000, "decoding"),
    ],
)
def test_an_invalid_file_is_not_copied(folders, name, file, text, reason):
    path = folders[1] / file
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    with copy(name, folders) as place:
        assert "SECRET" not in "".join(read_all(place).values())
        (problem,) = place.problems

    assert problem.startswith(f"{path} was not copied (")
    assert reason in problem
    assert "SECRET" not in problem


@pytest.mark.parametrize(
    ("old", "new"), [("export", "spawn()\nexport"), ('"steer", "hook"', '"steer", "run"')]
)
def test_only_an_unchanged_plugin_of_opencode_is_copied(folders, old, new):
    agent = AGENT_SETTINGS["opencode"]
    path = folders[0] / agent.project_file
    install_hook(agent, path, COMMAND)

    with copy("opencode", folders) as place:
        assert (place.project / agent.project_file).read_text() == path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with copy("opencode", folders) as place:
        assert not (place.project / agent.project_file).exists()
        (problem,) = place.problems

    assert "differs from what `agent-eval steer install` writes" in problem
