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
from ci_agent_eval.steering.policy.model import Allow, Rules, ToolCallRequest
from ci_agent_eval.steering.policy.reactor_builder import build_reactor
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import InMemoryWarnedCommands
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScript, make_words
from tests.tables import each_row, read_rows
from tests.unit.steering.policy.test_cases import cases

ALIASES = ("make test", "tox", "nox -s tests", "npm test", "just check", "run ci/all.py")


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


def test_each_case_that_runs_pytest_gets_the_full_answer(plain):
    missed = []
    for case in cases():
        tool = {"powershell": "pwsh", "cmd": "cmd"}.get(case.shell, "bash")
        command = case.command
        forms = ({"command": command}, json.dumps({"command": command}), [command, "-v"])
        quick = [form for form in forms if is_quick(plain, event_of(form, tool))]
        calls = [ToolCallRequest(tool, form) for form in quick]
        missed += [(case, call) for call in calls if names_pytest(call, Rules())]

    assert missed == []


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


QUICK = read_rows(Path(__file__).parent / "plain_commands.jsonl")


@each_row("command", QUICK)
def test_parts_that_can_be_joined_to_no_name_get_the_quick_answer(plain, command):
    assert is_quick(plain, event_of({"command": command, "description": "Shows {it}"}))


JOINED = read_rows(Path(__file__).parent / "joined_names.jsonl")


@each_row("command", JOINED)
def test_a_name_that_is_joined_of_parts_gets_the_full_answer(plain, command):
    call = ToolCallRequest("bash", {"command": command})

    assert names_pytest(call, Rules()) or "hell" in command
    assert not is_quick(plain, event_of({"command": command}))


@each_row("alias", ALIASES)
def test_a_command_of_the_settings_gets_the_full_answer(tmp_path, alias):
    environ = configure(tmp_path, SteeringSettings(rules=Rules(aliases=ALIASES)))

    joined = f"x={alias[1]}; {alias[0]}${{x}}{alias[2:-4]}{{{alias[-4:]},}}"
    for text in (alias, f"cd x && '{alias[0]}'{alias[1:]} -q", alias.replace(" ", " -s "), joined):
        program, _, rest = text.partition(" ")
        forms = ({"command": text}, {"command": text.split()}, {"program": program, "args": rest})
        for arguments in forms:
            assert find_quick_answer(HookOptions(), event_of(arguments), environ) is None
    for free in ("make lint", "make $TARGET"):
        assert find_quick_answer(HookOptions(), event_of({"command": free}), environ) == ""


@each_row(
    "command",
    [
        "rm -rf /",
        "git push -f",
        'git pu"sh" -f',
        "x=sh; git pu$x -f",
        "dd if=x of=/dev/sda",
        "RD /s C:\\",
        "format C:",
    ],
)
def test_a_dangerous_command_gets_the_full_answer_where_they_are_held(tmp_path, command):
    data = event_of({"command": command})
    environ = configure(tmp_path, SteeringSettings(dangerous=tuple(DANGEROUS_SETS)))

    assert find_danger(CommandLine(command), DANGEROUS_SETS) is not None
    assert find_quick_answer(HookOptions(), data, environ) is None
    for free in ("ls src", "git status && git diff $BASE"):
        assert find_quick_answer(HookOptions(), event_of({"command": free}), environ) == ""
    assert is_quick(tmp_path.parent, data)


CALLS: tuple[tuple[str, object], ...] = (
    ("Bash", {"command": "kubectl apply -f a.yaml", "description": "Deploys"}),
    ("Bash", '{"command": "kubectl apply -f a.yaml"}'),
    ("Bash", {"command": '{"command": "kubectl apply"}'}),
    ("Bash", {"command": ["kubectl", "apply"]}),
    ("Bash", {"command": "kubectl", "args": ["apply"]}),
    ("exec", {"program": "kubectl", "args": "apply"}),
    ("exec", {"language": "python", "code": "kubectl apply"}),
    ("python", "-m kubectl apply"),
    ("Read", {"file_path": "kubectl apply"}),
    ("Read", {"offset": 17, "limit": 5}),
    ("Bash", {"command": "ls -l src"}),
)


@each_row(
    "pattern",
    [
        r"\bkubectl (apply|delete)\b",
        "python -[cm] .?kube",
        '5, "offset": 17',
        "'apply",
        "^ls",
        "^kube",
    ],
)
@each_row(("tool", "arguments"), CALLS)
def test_a_call_that_a_rule_of_the_user_matches_gets_the_full_answer(
    tmp_path, tool, arguments, pattern
):
    settings = SteeringSettings(general=(GeneralRule("mine", pattern, "No.", ("*",)),))
    environ = configure(tmp_path, settings)
    answer = find_quick_answer(HookOptions(), event_of(arguments, tool), environ)
    memory = InMemoryWarnedCommands()
    decision = build_reactor(settings, memory).review(ToolCallRequest(tool, arguments), "s", 0)

    assert answer is None or isinstance(decision, Allow)


def test_a_call_that_no_rule_of_the_user_matches_gets_the_quick_answer(tmp_path):
    environ = configure(tmp_path, SteeringSettings(general=(GeneralRule("no-ls", "ls", "No."),)))

    for arguments in ({"command": "cat $HOME/a", "timeout": 5}, '{"command": "cat a"}'):
        assert find_quick_answer(HookOptions(), event_of(arguments), environ) == ""


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


def test_each_agent_has_an_answer():
    assert set(AGENTS) == set(ALLOW_OUTPUTS)


@each_row(
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
