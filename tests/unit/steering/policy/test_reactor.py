"""The chain of handlers: who is asked first, and what a session is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS
from ci_agent_eval.steering.policy.model import Allow, Rules, Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import Reactor, build_reactor
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.runners import load_runners
from ci_agent_eval.steering.store import SteeringStore
from tests.call_count import count_calls
from tests.tables import each_row

ON = SteeringSettings(enabled=True)


class Memory(SteeringStore):
    """A memory that counts what it was asked to remember."""

    count = 0

    def record_command(self, session, command, now):
        self.count += 1
        return super().record_command(session, command, now)


class Chat:
    """Sends commands through one reactor."""

    def __init__(self, settings=ON, memory=None, **named):
        self.memory = Memory() if memory is None else memory
        self.reactor = build_reactor(settings, self.memory, **named)

    def send(self, command, session="s", now=0.0, tool="bash"):
        return self.reactor.review(ToolCallRequest(tool, {"command": command}), session, now)

    def steers(self, *commands, **named):
        return [isinstance(self.send(command, **named), Steer) for command in commands]


@each_row(
    ("command", "example"),
    [
        ("pytest", "pytest path/to/test_file.py"),
        ("cargo test", "cargo test NAME_OF_A_TEST"),
        ("cd web && npm test", "npm test -- path/to/file.test.js"),
    ],
)
def test_the_placeholder_without_a_command_is_an_example_of_the_same_runner(command, example):
    chosen = SteeringSettings(
        enabled=True, message="Try {command}", rules=Rules(runners=load_runners(["cargo", "npm"]))
    )
    assert Chat(chosen).send(command).message == f"Try {example}"


def test_a_call_without_a_decision_is_not_recorded_as_held():
    calls = []

    class Ledger:
        def record_call(self, session, kind, now):
            calls.append(kind)

    def fail(run):
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError):
        Chat(advise=fail, ledger=Ledger()).send("pytest")
    assert calls == []


def test_a_call_with_one_new_intent_is_held_back_and_all_its_intents_are_remembered():
    both = "pytest; cd a && pytest"

    assert Chat().steers("pytest", both, both, "cd a && pytest -x") == [True, True, False, False]


def test_a_call_without_a_session_is_held_back_each_time_and_stores_nothing():
    chat = Chat()

    assert chat.steers("pytest", "pytest", session=None) == [True, True]
    assert chat.memory.count == 0
    assert "names no session" in chat.send("pytest", session=None).reason


def test_targeted_runs_go_through_and_store_nothing():
    chat = Chat()

    assert chat.steers("pytest tests/test_a.py", "pytest -k a", "pytest --lf") == [False] * 3
    assert isinstance(chat.send("ls"), Allow)
    assert chat.memory.count == 0


def test_the_highest_priority_decides_and_of_equals_the_first():
    allow, steer = Allow("yes"), Steer("no", "r", "h")

    def decide(*handlers):
        chain = [(priority, lambda *_, each=decision: each) for priority, decision in handlers]
        return Reactor(chain).review(ToolCallRequest("x", None), None, 0)

    assert decide((1, allow), (2, steer)) is steer
    assert decide((2, allow), (1, steer)) is allow
    assert decide((2, None), (1, steer)) is steer
    assert decide((1, allow), (1, steer)) is allow
    assert decide((1, None)) == Allow("no handler holds it back")


RULE = GeneralRule(name="no-curl", pattern=r"\bcurl\b", message="Use the client.")


def test_dangerous_commands_come_before_full_runs_and_these_before_the_users_rules():
    rule = GeneralRule(name="any", pattern="pytest", message="mine")
    chat = Chat(SteeringSettings(enabled=True, dangerous=tuple(DANGEROUS_SETS), general=(rule,)))

    assert [priority for priority, _ in chat.reactor.handlers] == [100, 95, 50]
    assert chat.send("pytest; rm -rf /").handler == "dangerous-commands"
    # What was held back for its danger was no attempt at a full run.
    assert chat.memory.count == 0
    assert chat.send("pytest").handler == "pytest-full-suite"
    assert chat.send("pytest").handler == "any"


def test_the_priority_can_be_adjusted():
    rule = GeneralRule(name="first", pattern="pytest", message="mine", priority=60)
    chat = Chat(SteeringSettings(enabled=True, priority=55, general=(rule,)))

    assert chat.send("pytest").handler == "first"


def test_a_rule_of_the_users_holds_back_each_time_or_once():
    chat = Chat(SteeringSettings(general=(RULE,)))
    decision = chat.send("cd x && curl http://h")

    assert (decision.message, decision.handler) == ("Use the client.", "no-curl")
    assert chat.steers("curl x", "curl x") == [True, True]
    once = Chat(SteeringSettings(general=(GeneralRule("c", "curl", "m", once=True),)))
    assert once.steers("curl x", "curl  x", "curl y") == [True, False, True]
    assert once.steers("curl x", session=None) == [True]


def test_a_rule_is_about_the_tools_it_names():
    rule = GeneralRule("r", r"/etc/passwd", "m", tools=("Write_File",))
    reactor = build_reactor(SteeringSettings(general=(rule,)), SteeringStore())

    def review(tool, arguments):
        return isinstance(reactor.review(ToolCallRequest(tool, arguments), "s", 0), Steer)

    assert review("write_file", {"path": "/etc/passwd", "content": "x"})
    assert review("WRITE_FILE", '{"path": "/etc/passwd"}')
    assert not review("bash", "cat /etc/passwd")
    assert not review("write_file", {"path": "a.txt"})


LINES = (Path(__file__).parent / "dangerous_commands.txt").read_text().splitlines()[1:]
DANGERS = [tuple(line.split(" ", 1)) for line in LINES]


@each_row("name,command", [each for each in DANGERS if each[0] != "none"])
def test_dangerous_commands_are_held_back_however_often_they_come(name, command):
    chat = Chat(SteeringSettings(dangerous=(name,)))

    assert chat.steers(command, command) == [True, True]
    decision = chat.send(command)
    assert name in decision.reason
    assert decision.message.startswith("This command is held back: it ")
    others = tuple(each for each in DANGEROUS_SETS if each != name)
    assert Chat(SteeringSettings(dangerous=others)).steers(command) == [False]


def test_what_only_looks_dangerous_goes_through():
    commands = [command for name, command in DANGERS if name == "none"]
    chat = Chat(SteeringSettings(dangerous=tuple(DANGEROUS_SETS)))

    assert [each for each in commands if chat.steers(each) != [False]] == []
    assert len(commands) >= 40


@each_row(
    "command",
    ["cd / && rm -rf *", "cd /; rm -rf .", "cd /usr && sudo rm -r ./*", "(cd ~ && rm -rf *)"],
)
@each_row("name", ["delete-root", "discard-work"])
def test_deleting_a_root_that_was_entered_before_is_both_dangers(command, name):
    assert Chat(SteeringSettings(dangerous=(name,))).steers(command, command) == [True, True]


DANGEROUS_WORDS = st.sampled_from(
    ["rm", "-rf", "/", "git", "push", "-f", "sudo", "bash", "-c", "'", '"', "$(", ")", "|", "&&", ";",
     "if", "then", "fi", "{", "}", "\n", "<<A", "A", "`", "dd", "of=/dev/sda", "pytest", "eval", "\ud800"]
)  # fmt: skip


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.text() | st.lists(DANGEROUS_WORDS, max_size=12).map(" ".join),
    st.sampled_from(["bash", "pwsh", "cmd", "pytest", "python"]),
    st.booleans(),
)
def test_no_command_raises(command, tool, as_list):
    rule = GeneralRule("r", "secret", "m", tools=("*",))
    chat = Chat(SteeringSettings(enabled=True, dangerous=tuple(DANGEROUS_SETS), general=(rule,)))

    decision = chat.send(command.split() if as_list else command, tool=tool)

    assert isinstance(decision, Allow | Steer)
    assert decision.reason


@each_row(
    "arguments",
    [
        "rm -rf x; " * 100_000,
        ["rm -rf x; (( $( ' \n"] * 30_000,
        {"commands": ["rm $(( pytest {a,b} " * 900] * 100},
        "rm " + "(" * 10**6,
        "rm " + "$(" * 5 * 10**5,
    ],
    ids=range(5),
)
def test_the_work_for_a_call_of_a_megabyte_is_bounded(arguments):
    chat = Chat(SteeringSettings(enabled=True, dangerous=tuple(DANGEROUS_SETS)))

    calls = count_calls(lambda: chat.reactor.review(ToolCallRequest("bash", arguments), "s", 0))

    # The most that any of these takes is 0.72 million; benchmarks/README.md has the times.
    assert calls < 2_000_000


@each_row(
    "command",
    [
        "Remove-Item -Recurse -Force C:\\",
        "Remove-Item -Recurse -Force .git",
        "Remove-Item .\\ -Recurse",
        "rd /s /q C:\\",
        "rd /s /q .git",
        "Format-Volume -DriveLetter D",
    ],
)
def test_windows_has_dangers_of_its_own(command):
    tool = "cmd" if command.startswith("rd") else "powershell"

    assert Chat(SteeringSettings(dangerous=tuple(DANGEROUS_SETS))).steers(command, tool=tool) == [
        True
    ]
