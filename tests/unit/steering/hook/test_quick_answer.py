"""The quick answer never lets through what the full detector would hold back.

The detector is asked without its own filter, which is the same as that of the quick answer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.steering.hook.coding_agents import AGENTS
from ci_agent_eval.steering.hook.event_fields import ALLOW_OUTPUTS
from ci_agent_eval.steering.hook.options import HookOptions
from ci_agent_eval.steering.hook.quick_answer import find_quick_answer
from ci_agent_eval.steering.hook.settings_summary import (
    HookFiles,
    load_summary,
    read_origin,
    store_summary,
)
from ci_agent_eval.steering.policy.command_extraction import CommandLine, extract_commands
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS, find_danger
from ci_agent_eval.steering.policy.detection import _detect_in_layers, drop_invalid_characters
from ci_agent_eval.steering.policy.model import Rules, ToolCallRequest
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScript, make_words
from tests.unit.steering.policy.test_cases import cases
from tests.unit.steering.policy.test_properties import COMMANDS, WRAPPERS, quoted

FIXTURES = sorted(
    Path(__file__).parents[3].joinpath("integration/steering/fixtures").glob("*.json")
)
ALIASES = ("make test", "tox", "nox -s tests", "npm test", "just check")


def names_pytest(call: ToolCallRequest, rules: Rules) -> bool:
    """Whether the detector without its filter finds a run in any command of the call."""
    return any(
        _detect_in_layers(
            [
                ShellScript(drop_invalid_characters(command.text), command.shell)
                if isinstance(command, CommandLine)
                else ShellCommand(make_words(*command.words))
            ],
            "",
            rules,
            ".",
        ).pytest
        for command in extract_commands(call, rules.shell_tools)
    )


def event_of(arguments: object, tool: str = "Bash") -> bytes:
    event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments}
    return json.dumps(event).encode()


def is_quick(folder: Path, data: bytes) -> bool:
    return find_quick_answer(HookOptions(), data, {"CLAUDE_PROJECT_DIR": str(folder)}) is not None


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A project without settings."""
    return tmp_path_factory.mktemp("plain")


def configure(folder: Path, settings: SteeringSettings) -> dict[str, str]:
    """Write settings and their summary as the full answer does; return the environment."""
    environ = {"CLAUDE_PROJECT_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    (folder / "agent-eval-steering.yaml").write_text("session: {}\n")
    files = HookFiles(HookOptions(), environ)
    store_summary(files, read_origin(files) or [], settings)
    return environ


@pytest.mark.parametrize(("_", "command", "shell", "__"), list(cases()))
def test_each_case_that_runs_pytest_gets_the_full_answer(plain, _, command, shell, __):
    tool = {"powershell": "pwsh", "cmd": "cmd"}.get(shell, "bash")
    for arguments in ({"command": command}, json.dumps({"command": command}), [command, "-v"]):
        if is_quick(plain, event_of(arguments, tool)):
            assert not names_pytest(ToolCallRequest(tool, arguments), Rules())


@given(st.data(), st.sampled_from(COMMANDS), st.lists(st.sampled_from(WRAPPERS), max_size=3))
def test_each_quoted_and_wrapped_run_gets_the_full_answer(plain, data, case, wrappers):
    text = data.draw(quoted(case[1]))
    for wrapper in wrappers:
        text = wrapper.format(text)

    assert case[0] == "no" or not is_quick(plain, event_of({"command": text}))


PIECES = ("py", "test", "pytest", "p", "y", "t", "\\", "\n", "'", '"', "$x", "x=py;", "{", "}", ",",
          " ", ";", "|", "^", "`", "\0", "\ud800", "ﬆ", "ſ", "T", "-m", "python", "eval", "echo",
          "$?", "$#", "%", "hatch", "rye", "sh", "xargs", "powershell", "&", "\\n", "\\u0070")  # fmt: skip


@example("py\0test", 0)
@example("py\\\ntest", 2)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(0, 3))
def test_any_text_that_runs_pytest_gets_the_full_answer(plain, text, depth):
    arguments: object = {"command": text}
    for _ in range(depth):
        arguments = json.dumps(arguments)

    if is_quick(plain, event_of(arguments)):
        assert not names_pytest(ToolCallRequest("Bash", arguments), Rules())


@pytest.mark.parametrize("alias", ALIASES)
def test_a_command_of_the_settings_gets_the_full_answer(tmp_path, alias):
    environ = configure(tmp_path, SteeringSettings(rules=Rules(aliases=ALIASES)))

    for text in (alias, f"cd x && '{alias[0]}'{alias[1:]} -q", alias.replace(" ", " -s ")):
        data = event_of({"command": text})
        assert find_quick_answer(HookOptions(), data, environ) is None
    assert find_quick_answer(HookOptions(), event_of({"command": "make lint"}), environ) == ""


@pytest.mark.parametrize(
    "command", ["rm -rf /", "git push -f", "dd if=x of=/dev/sda", "RD /s C:\\", "format C:"]
)
def test_a_dangerous_command_gets_the_full_answer_where_they_are_held(tmp_path, command):
    data = event_of({"command": command})
    environ = configure(tmp_path, SteeringSettings(dangerous=tuple(DANGEROUS_SETS)))

    assert find_danger(CommandLine(command), DANGEROUS_SETS) is not None
    assert find_quick_answer(HookOptions(), data, environ) is None
    assert find_quick_answer(HookOptions(), event_of({"command": "ls src"}), environ) == ""
    assert is_quick(tmp_path.parent, data)


def test_each_call_gets_the_full_answer_where_the_user_has_rules(tmp_path):
    settings = SteeringSettings(general=(GeneralRule("no-ls", "ls", "No."),))
    environ = configure(tmp_path, settings)

    assert find_quick_answer(HookOptions(), event_of({"command": "ls"}), environ) is None


def test_a_summary_is_used_for_the_settings_it_was_made_from(tmp_path):
    environ = configure(tmp_path, SteeringSettings())
    files = HookFiles(HookOptions(), environ)

    assert load_summary(files) is not None
    assert load_summary(HookFiles(HookOptions(config="other.yaml"), environ))["commands"] == []
    Path(files.settings).write_text("session: {pytest_full_suite_aliases: [tox]}\n")
    assert load_summary(files) is None
    store_summary(files, read_origin(files) or [], SteeringSettings())
    assert load_summary(files) is not None
    Path(files.summary).write_text("[")
    assert load_summary(files) is None
    assert Path(files.summary).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_each_agents_events_are_read(plain, path):
    fixture = json.loads(path.read_text())
    text = json.dumps(fixture["event"])
    environ = {"CLAUDE_PROJECT_DIR": str(plain)}

    def answer(command, **options):
        event = text.replace("pytest", command).encode()
        return find_quick_answer(HookOptions(**options), event, environ)

    for options in ({}, {"agent": fixture["agent"]}):
        assert answer("pytest", **options) is None
        assert answer("ls -l; echo $?", **options) == fixture["allowed"]


def test_each_agent_has_an_answer():
    assert set(AGENTS) == set(ALLOW_OUTPUTS)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        (HookOptions(problem="unknown option"), event_of({"command": "ls"})),
        (HookOptions(agent="emacs"), event_of({"command": "ls"})),
        (HookOptions(), b""),
        (HookOptions(), b"[]"),
        (HookOptions(), b"[" * 100_000),
        (HookOptions(), b'{"hook_event_name": "PreToolUse", "tool_name": "Bash"}'),
        (HookOptions(), event_of({}, tool="run_pytest")),
        (HookOptions(), event_of({"command": ["powershell", "-e", "cAB5AHQAZQBzAHQA"]})),
    ],
)
def test_whatever_is_not_plain_gets_the_full_answer(plain, options, data):
    assert find_quick_answer(options, data, {"CLAUDE_PROJECT_DIR": str(plain)}) is None
