"""Programs as agents: events on standard output, failures and process trees."""

from __future__ import annotations

import json
import sys

from ci_agent_eval.engine.adapters.command import CommandAgent
from ci_agent_eval.engine.limits import RunLimits
from tests.integration.engine.rig import run_agent
from tests.servers.rig import is_there
from tests.tables import each_row


def python(code, **options):
    return CommandAgent([sys.executable, "-c", code], name="prog", **options)


SPEAKS = """
import json, sys
prompt = sys.stdin.read()
def say(**event): print(json.dumps(event), flush=True)
say(type="tool_call", name="balance", arguments={"q": prompt})
say(type="tool_result", result=1500)
say(type="text", text="You have 1500.")
say(type="usage", input=10, output=5)
"""


def test_a_program_is_an_agent():
    result = run_agent(python(SPEAKS))
    assert (result.stop_reason, result.error) == ("completed", None)
    assert result.final_response == "You have 1500."
    assert result.tool_call_arg("balance", "q") == "my balance?"
    assert result.all_tool_calls[0].result == 1500
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]


def test_a_program_may_be_told_what_went_before():
    code = "import json,sys; d=json.load(sys.stdin); print(json.dumps({'type':'text','text':str(len(d['messages']))+d['prompt']}))"
    agent = python(code, stdin="json")
    first = run_agent(agent, "a")
    second = run_agent(agent, "b", messages=first.messages)
    assert [first.final_response, second.final_response] == ["0a", "2b"]


def test_a_program_gets_the_environment_it_is_given(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    code = "import json,os; print(json.dumps({'type':'text','text':' '.join(k for k in ('MY_TOKEN','GIVEN') if k in os.environ)}))"
    assert run_agent(python(code, env={"GIVEN": "1"})).final_response == "GIVEN"


@each_row(
    ("code", "said"),
    [
        (
            "import sys; sys.exit('no luck')",
            "prog ended with exit code 1; its stderr ends with: no luck",
        ),
        ("print('hello')", "wrote a line 1 that cannot be read: it is not JSON"),
        ("print('x' * 10_000)\nimport signal; signal.pause()", "wrote more than 5000 bytes"),
        ("while True: print('{}' * 5000, flush=True)", "wrote more than 5000 bytes"),
    ],
)
def test_a_program_that_breaks_is_an_infrastructure_error(code, said):
    result = run_agent(python(code, cap_bytes=5000))
    assert result.stop_reason == "model_error"
    assert said in result.error


USAGE = 'print(\'{"type": "usage", "finish_reason": "max_tokens"}\')'
SAYS = 'print(\'{"type": "text", "text": "Well,"}\')'


@each_row(
    ("code", "stop", "said"),
    [
        ("pass", "empty_answer", "prog gave no answer; its stderr is empty"),
        (SAYS.replace("Well,", " "), "empty_answer", "no text"),
        (f"{SAYS}\n{USAGE}", "truncated", "token limit"),
        (f"{SAYS}\n{USAGE.replace('max_tokens', 'SAFETY')}", "refusal", "refused: Well,"),
    ],
)
def test_a_program_without_an_answer_is_an_agent_failure(code, stop, said):
    result = run_agent(python(code))
    assert (result.stop_reason, result.outcome) == (stop, "failed")
    assert said in result.error


def test_a_program_that_is_not_there():
    result = run_agent(CommandAgent(["/no/such/program"]))
    assert (result.stop_reason, result.agent) == ("model_error", "program")
    assert "its stderr ends with: cannot start /no/such/program: " in result.error


HANGS = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print('{"type": "text", "text": "%d"}' % child.pid, flush=True)
signal.pause()
"""


def test_a_program_that_hangs_is_gone_with_its_children_and_keeps_what_it_said():
    result = run_agent(python(HANGS), timeout_s=2)
    assert result.stop_reason == "timeout"
    assert not is_there(int(result.final_response))


def test_a_child_that_outlives_a_program_is_gone_as_well():
    silent = "Popen(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, args="
    result = run_agent(python(HANGS.rsplit("signal.pause", 1)[0].replace("Popen(", silent)))
    assert result.stop_reason == "completed"
    assert not is_there(int(result.final_response))


def test_hostile_text_is_kept_as_text():
    text = "\ud800 \x00 ::error:: <!-- @all -->"
    code = f"import json; print(json.dumps({{'type': 'text', 'text': {json.dumps(text)}}}))"
    assert run_agent(python(code)).final_response == "\ufffd \x00 ::error:: <!-- @all -->"


def test_turns_that_were_taken_beyond_the_limit_are_not_counted_twice():
    result = run_agent(python(SPEAKS), limits=RunLimits(max_turns=1))
    assert (result.stop_reason, result.needs_turn) == ("max_turns", False)
