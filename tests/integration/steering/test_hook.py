"""The hook as a coding agent runs it: a process for each event, in each agent's own format.

A file in fixtures/ is an event as its agent documents it, with both answers and their source.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ci_agent_eval.steering.hook.coding_agents import AGENTS, recognize_agent
from ci_agent_eval.steering.hook.options import HookOptions, parse_hook_options
from ci_agent_eval.steering.hook.settings_summary import HookFiles
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, RESEND

FIXTURES = sorted(Path(__file__).with_name("fixtures").glob("*.json"))
ENABLE = "--enable-pytest-full-suite-steering"


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def fixture(request):
    return json.loads(request.param.read_text())


@pytest.fixture
def hook(tmp_path):
    """Run the hook in a process; the memory of all of a test's runs is the same file."""

    def run(event, *options, **environ):
        given = event if isinstance(event, bytes) else json.dumps(event).encode()
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYTEST_FULL_SUITE", "CLAUDE_"))
        }
        return subprocess.run(
            [sys.executable, "-m", "ci_agent_eval", "steer", "hook", *options],
            input=given,
            cwd=tmp_path,
            env={**kept, "XDG_STATE_HOME": str(tmp_path / "state"), **environ},
            capture_output=True,
            check=False,
            timeout=600,
        )

    return run


def decided(done):
    """The answer of a run that must have gone well."""
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return json.loads(done.stdout) if done.stdout else ""


def filled(expected, answer, *, names_session):
    """The documented answer with our words in it."""
    message = DEFAULT_MESSAGE if names_session else DEFAULT_MESSAGE.replace(RESEND, "")
    text = json.dumps(expected).replace("{message}", message)
    if "{reason}" in text:
        text = text.replace("agent-eval held a command back: {reason}", answer["user_message"])
        assert answer["user_message"].startswith("agent-eval held a command back: no path, node id")
    return json.loads(text)


def renamed(event, command):
    return json.loads(json.dumps(event).replace("pytest", command))


def sent_again(event):
    """The same call in the model's next answer."""
    return event | {key: f"{event[key]}1" for key in ("answer_id", "timestamp") if key in event}


def test_each_file_names_its_source(fixture):
    assert any(source.startswith("https://") for source in fixture["source"])


def test_each_agent_is_recognised_by_its_events(fixture):
    assert recognize_agent(fixture["event"]).name == fixture["agent"]


@pytest.mark.parametrize("named", [True, False], ids=["named", "recognised"])
def test_a_full_run_is_denied_once_in_the_agents_format(hook, fixture, named):
    options = [ENABLE, *(["--for", fixture["agent"]] if named else [])]
    names_session = any(
        key in fixture["event"] for key in ("session_id", "sessionId", "conversation_id")
    )

    first = hook(fixture["event"], *options)
    second = hook(sent_again(fixture["event"]), *options)

    assert decided(first) == filled(fixture["denied"], decided(first), names_session=names_session)
    if names_session:
        assert second.stdout.decode() == fixture["allowed"]
    else:
        assert second.stdout == first.stdout


def test_all_else_goes_through_in_the_agents_format(hook, fixture):
    done = hook(renamed(fixture["event"], "ls -l"), ENABLE)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == fixture["allowed"]


FAULTS = ("settings", "variable", "store", "usage", "event", "off")


def needs_no_store(path, fault):
    """Without a session nothing is remembered, so a broken store does no harm."""
    return fault == "store" and path.stem == "copilot-pre-tool-use-text"


@pytest.mark.parametrize(
    ("fixture", "broken"),
    [
        pytest.param(path, fault, id=f"{path.stem}-{fault}")
        for path in FIXTURES
        for fault in FAULTS
        if not needs_no_store(path, fault)
    ],
    indirect=["fixture"],
)
def test_what_goes_wrong_inside_lets_the_call_through_and_says_so(hook, fixture, broken, tmp_path):
    options, environ, event = [ENABLE, "--for", fixture["agent"]], {}, fixture["event"]
    if broken == "settings":
        (tmp_path / "agent-eval-steering.yaml").write_text("session: 7")
    elif broken == "variable":
        environ = {"PYTEST_FULL_SUITE_STEERING_ENABLED": "perhaps"}
    elif broken == "store":
        (tmp_path / "x").write_text("no database, as anybody can see" * 9)
        options += ["--store", "x"]
    elif broken == "usage":
        options += ["--no-such-option"]
    elif broken == "event":
        event = {"hook_event_name": "SessionStart", "session_id": "x"}
    else:
        options.remove(ENABLE)

    done = hook(event, *options, **environ)

    assert done.returncode == 0
    assert done.stdout.decode() == fixture["allowed"]
    assert done.stderr.decode().startswith("agent-eval steer hook: let the call through: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (b"", "JSONDecodeError"),
        (b"{", "JSONDecodeError"),
        (b"\xff\xfe\xfd", "UnicodeDecodeError"),
        (b"[" * 100_000, "RecursionError"),
        (b"[]", "the event is no JSON object"),
        (b"{}", "the event does not identify the agent; name it: --for claude-code|codex"),
        (b'{"hook_event_name": "PostToolUse"}', "the event does not identify the agent"),
        (
            b'{"hook_event_name": 7, "toolName": []}',
            "not an event of copilot before or after a tool call",
        ),
        (
            b'{"hook_event_name": "PreToolUse"}',
            "not an event of claude-code before or after a tool call",
        ),
    ],
)
def test_an_event_that_is_none_lets_the_call_through(hook, event, said):
    done = hook(event, ENABLE)

    assert (done.returncode, done.stdout) == (0, b"")
    assert said in done.stderr.decode()


def test_an_agent_that_is_unknown_lets_the_call_through(hook, fixture):
    done = hook(fixture["event"], ENABLE, "--for", "emacs")

    assert (done.returncode, done.stdout) == (0, b"")
    assert "unknown agent 'emacs'; known: claude-code, codex, gemini" in done.stderr.decode()


CLAUDE = json.loads((Path(__file__).with_name("fixtures") / "claude-code-pre-tool-use.json").read_text())["event"]  # fmt: skip


def is_denied(done):
    return decided(done) != ""


def test_sessions_are_told_apart_and_intents_remembered_across_processes(hook):
    other = {**CLAUDE, "session_id": "other"}

    assert is_denied(hook(CLAUDE, ENABLE))
    assert is_denied(hook(renamed(CLAUDE, "cd web && pytest -q"), ENABLE))
    assert is_denied(hook(other, ENABLE))
    assert not is_denied(hook(renamed(CLAUDE, "cd web/;  python -m pytest | tail"), ENABLE))
    assert not is_denied(hook(CLAUDE, ENABLE))


RESULT = '{"type": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0"}]}'
CODEX_RESULT = '{"payload": {"type": "function_call_output", "call_id": "call_0"}}'
CONVERSATIONS = {
    "claude-code": [
        '{"message": {"id": "msg_1", "content": [{"type": "tool_use", "id": "call_0"}]}}',
        RESULT,  # comes early if the answer is streamed
        '{"message": {"id": "msg_1", "content": [{"type": "tool_use", "id": "call_1"}]}}',
        '{"message": {"id": "msg_2", "content": [{"type": "tool_use", "id": "call_2"}]}}',
    ],
    "codex": [
        '{"payload": {"type": "function_call", "call_id": "call_0"}}',
        '{"payload": {"type": "function_call", "call_id": "call_1"}}',
        CODEX_RESULT,
        '{"payload": {"type": "function_call", "call_id": "call_2"}}',
    ],
    "qwen-code": [
        '{"type": "assistant", "parts": [{"id": "call_0"}, {"id": "call_1"}]}',
        RESULT,
        '{"type": "assistant", "parts": [{"id": "call_2"}]}',
    ],
}


@pytest.mark.parametrize("agent", CONVERSATIONS)
def test_of_equal_calls_in_one_answer_all_are_denied_and_those_of_the_next_are_not(
    hook, agent, tmp_path
):
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text("\n".join(CONVERSATIONS[agent]) + "\n")
    event = {**CLAUDE, "transcript_path": str(conversation)}

    def is_held(call):
        return is_denied(hook({**event, "tool_use_id": call}, ENABLE, "--for", agent))

    assert [is_held(f"call_{number}") for number in range(3)] == [True, True, False]


GEMINI = {
    "hook_event_name": "BeforeTool",
    "session_id": "s",
    "tool_name": "run_shell_command",
    "tool_input": {"command": "pytest"},
}


def test_of_equal_calls_in_one_answer_of_gemini_all_are_denied(hook, tmp_path):
    """Its events name no call, but it writes the results of an answer all at once."""
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text('{"type": "gemini", "content": ""}\n')
    event = {**GEMINI, "transcript_path": str(conversation)}

    first, second = (hook(event, ENABLE) for _ in range(2))
    with conversation.open("a") as file:
        file.write('{"type": "user", "content": [{"functionResponse": {}}]}\n')
    later = hook(event, ENABLE)

    assert decided(first) == decided(second) != {}
    assert decided(later) == {}


def test_an_insisted_call_of_gemini_runs_with_an_indented_conversation(hook, tmp_path):
    """Versions before the one with JSON lines write one indented document."""
    conversation = tmp_path / "conversation.json"
    event = {**GEMINI, "transcript_path": str(conversation)}
    held = []
    for count in range(1, 4):
        results = [{"result": [{"functionResponse": {"id": n}}]} for n in range(count)]
        conversation.write_text(json.dumps({"messages": results}, indent=2))
        held.append(decided(hook(event, ENABLE)) != {})

    assert held == [True, False, False]


def test_an_insisted_call_runs_if_the_conversations_results_are_out_of_reach(hook, tmp_path):
    conversation = tmp_path / "conversation.jsonl"
    conversation.write_text(json.dumps({"type": "user", "content": "x" * 2**20}) + "\n")
    event = {**GEMINI, "transcript_path": str(conversation)}

    assert [decided(hook(event, ENABLE)) != {} for _ in range(2)] == [True, False]


@pytest.mark.parametrize("agent", ["copilot", "opencode"])
def test_of_equal_calls_in_one_answer_of_others_all_are_denied(hook, agent):
    name = {"copilot": "copilot-pre-tool-use", "opencode": "opencode-tool-execute-before"}[agent]
    path = Path(__file__).with_name("fixtures") / f"{name}.json"
    event = json.loads(path.read_text())["event"]

    assert is_denied(hook(event, ENABLE))
    assert is_denied(hook(event, ENABLE))
    assert not is_denied(hook(sent_again(event), ENABLE))


def test_other_sections_of_the_settings_file_belong_to_other_programs(hook, tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "backends:\n  - name: local\nsession:\n  pytest_full_suite_steering_enabled: true\n"
    )

    assert is_denied(hook(CLAUDE))


def test_an_event_without_a_session_is_denied_each_time_and_leaves_no_file(hook, tmp_path):
    event = {key: value for key, value in CLAUDE.items() if key != "session_id"}

    assert is_denied(hook(event, ENABLE))
    assert is_denied(hook(event, ENABLE))
    assert not (tmp_path / "state").exists()


def test_of_many_processes_that_ask_at_once_one_is_denied(hook):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: is_denied(hook(CLAUDE, ENABLE)), range(8)))

    assert answers.count(True) == 1


def test_spellings_of_one_intent_are_denied_once(hook, tmp_path):
    (tmp_path / "pytest.ini").write_text("")
    (tmp_path / "src").mkdir()
    event = {**CLAUDE, "cwd": str(tmp_path)}
    commands = ["pytest -q", "python -m pytest", f"cd {tmp_path} && uv run pytest -x | tail -5"]

    assert [is_denied(hook(renamed(event, each), ENABLE)) for each in commands] == [
        True,
        False,
        False,
    ]
    assert not is_denied(hook({**event, "cwd": str(tmp_path / "src")}, ENABLE))


def test_a_directory_that_covers_testpaths_of_the_event_s_folder_is_denied(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text("session: {bare_directory: covers_testpaths}\n")
    for name, testpaths in (("a", "tests"), ("b", "tests docs")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pytest.ini").write_text(f"[pytest]\ntestpaths = {testpaths}\n")
    event = renamed(CLAUDE, "pytest tests/")
    options = (ENABLE, "--config", "steer.yaml")

    assert is_denied(hook({**event, "cwd": str(tmp_path / "a")}, *options))
    assert not is_denied(hook({**event, "cwd": str(tmp_path / "b")}, *options))


def test_the_settings_reach_the_hook(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text(
        "session:\n  pytest_full_suite_steering_message: Not so fast.\n"
        "  dangerous_commands: [force-push]\n"
    )
    config = ("--config", "steer.yaml")
    said = decided(hook(CLAUDE, *config, PYTEST_FULL_SUITE_STEERING_ENABLED="true"))

    assert said["hookSpecificOutput"]["permissionDecisionReason"] == "Not so fast."
    assert decided(hook(CLAUDE, *config, "--disable-pytest-full-suite-steering")) == ""
    push = renamed(CLAUDE, "git push -f")
    assert is_denied(hook(push, *config))
    assert is_denied(hook(push, *config))


def test_the_settings_of_the_project_are_found_from_within_it(hook, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_steering_enabled: true}\n"
    )
    (project / "other.yaml").write_text("session: {}\n")
    named = {"CLAUDE_PROJECT_DIR": str(project)}

    assert is_denied(hook(CLAUDE, **named))
    assert b"steering is off" in hook(CLAUDE, "--config", "other.yaml", **named).stderr
    assert b"other.yaml: there is no such file" in hook(CLAUDE, "--config", "other.yaml").stderr


@pytest.mark.parametrize(("closed", "out"), [("<&-", b"{}\n"), (">&-", b""), ("2>&-", b"{}\n")])
def test_closed_streams_do_no_harm(closed, out, tmp_path):
    words = shlex.join([sys.executable, "-m", "ci_agent_eval", "steer", "hook", "--for", "gemini"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} {closed}"],
        input=None if closed == "<&-" else b"{",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=600,
    )

    assert (done.returncode, done.stdout) == (0, out)


def test_a_limit_on_the_tests_asks_the_pytest_of_the_project(hook, tmp_path):
    project = tmp_path / "app"
    (project / "tests").mkdir(parents=True)
    (project / "tests/test_few.py").write_text("def test_a(): pass\n")
    (project / "tests/test_many.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(30))\ndef test_a(n): pass\n"
    )
    (tmp_path / "steer.yaml").write_text("session: {pytest_full_suite_max_collected: 20}\n")

    def answer(command):
        event = {**renamed(CLAUDE, command), "cwd": str(project)}
        return is_denied(
            hook(event, ENABLE, "--config", "steer.yaml", AGENT_EVAL_PYTHON=sys.executable,
                 PYTEST_ADDOPTS="-p no:cacheprovider")
        )  # fmt: skip

    assert answer("pytest tests/test_many.py")
    assert not answer("pytest tests/test_few.py")
    assert not answer("pytest tests/test_many.py -k 'a and 7'")
    assert not answer("pytest tests/there_is_no_such_test.py")


def answer_and_imports(event, folder):
    """Names instead of milliseconds: a busy machine must not fail a test of how fast it starts."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ci_agent_eval", "steer", "hook", ENABLE],
        input=json.dumps(event).encode(),
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
        capture_output=True,
        check=True,
        timeout=600,
    )
    lines = done.stderr.decode().splitlines()
    return done.stdout, {line.rpartition("|")[2].strip() for line in lines}


def test_nothing_is_loaded_that_takes_long(tmp_path):
    _, loaded = answer_and_imports(CLAUDE, tmp_path)

    assert {"tree_sitter", "sqlite3"} <= loaded
    slow = ("pydantic", "yaml", "pytest", "httpx", "starlette", "github", "jinja2", "asyncio")
    assert not loaded.intersection(slow)


def test_what_no_command_is_needs_no_grammar(tmp_path):
    event = {**CLAUDE, "tool_name": "Write", "tool_input": {"content": "pytest"}}
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    assert "ci_agent_eval.steering.hook" in loaded
    assert not loaded.intersection({"tree_sitter", "sqlite3", "hashlib", "click"})


def test_a_command_without_a_runner_loads_next_to_nothing(tmp_path):
    """The standard library's `typing` alone takes half as long as starting Python."""
    event = {**CLAUDE, "tool_input": {"command": "git status && ls -l src | tail -5; echo $?"}}
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    ours = {name for name in loaded if name.startswith("ci_agent_eval")}
    assert "ci_agent_eval.steering.hook.quick_answer" in ours
    assert len(ours) <= 13
    assert not loaded.intersection({"typing", "dataclasses", "pathlib", "hashlib"})


def test_a_command_without_a_runner_is_answered_without_reading_yaml_again(hook, tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_aliases: [make test], pytest_full_suite_steering_enabled: true}"
    )
    environ = {"PYTHONPROFILEIMPORTTIME": "1"}
    lint = renamed(CLAUDE, "make lint")

    assert b" yaml" in hook(lint, **environ).stderr
    assert b" yaml" not in hook(lint, **environ).stderr
    assert is_denied(hook(renamed(CLAUDE, "make test")))


def test_the_texts_of_the_settings_file_are_stored_nowhere_else(hook, tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_steering_enabled: true}\ndeploy: {token: hunter2}\n"
    )

    assert is_denied(hook(CLAUDE))

    stored = list((tmp_path / "state/agent-eval").iterdir())
    assert {path.suffix for path in stored} == {".sqlite3", ".json"}
    assert not [path for path in stored if b"hunter2" in path.read_bytes()]


@pytest.mark.parametrize("broken", [False, True])
def test_a_summary_is_stored_in_the_current_folder_or_not_at_all(hook, tmp_path, broken):
    (tmp_path / "agent-eval-steering.yaml").write_text("session: {}")
    files = HookFiles(HookOptions(store="s.sqlite3"), {"CLAUDE_PROJECT_DIR": str(tmp_path)})
    if broken:
        (tmp_path / files.summary).mkdir()

    assert is_denied(hook(CLAUDE, ENABLE, "--store", "s.sqlite3"))
    assert (tmp_path / files.summary).is_file() is not broken


@pytest.mark.parametrize(
    "start", [["-m", "ci_agent_eval"], ["-c", "from ci_agent_eval.app.cli import main; main()"]]
)
def test_the_hook_is_the_same_past_the_library_of_the_other_commands(start, tmp_path):
    done = subprocess.run(
        [sys.executable, *start, "steer", "hook", ENABLE, "--for=cursor", "--bogus"],
        input=b"{}",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=600,
    )

    assert done.stdout == b'{"permission": "allow"}\n'
    assert b"let the call through" in done.stderr


def test_the_help_names_all_options(hook):
    page = hook({}, "--help").stdout.decode()

    for option in ("--for AGENT", "--store FILE", "--config FILE", ENABLE, "--disable-pytest"):
        assert option in page
    assert all(name in page for name in AGENTS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], HookOptions()),
        (["--for", "codex", "--store=a=b"], HookOptions(agent="codex", store="a=b")),
        (["--config", "x", ENABLE], HookOptions(config="x", enabled=True)),
        ([ENABLE, "--disable-pytest-full-suite-steering"], HookOptions(enabled=False)),
        (["--for", "x", "--bad", "--for=codex"], HookOptions(agent="codex", problem="unknown option '--bad'")),
        (["stray"], HookOptions(problem="unknown option 'stray'")),
        (["--config"], HookOptions(problem="option --config needs a value")),
        (["--for="], HookOptions(problem="option --for needs a value")),
    ],
)  # fmt: skip
def test_options_are_read_and_what_is_wrong_is_kept_to_be_said(words, expected):
    assert vars(parse_hook_options(words)) == vars(expected)


def test_a_runner_of_the_settings_is_denied_once_and_its_narrowed_runs_never(hook, tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_steering_enabled: true, runners: [cargo]}\n"
    )

    def denies(command):
        return is_denied(hook(renamed(CLAUDE, command)))

    assert denies("cargo test 2>&1 | tail")
    assert not denies("cargo test parser")
    assert not denies("cargo test -q")
    assert not denies("go test ./...")
    assert not denies("ls")
