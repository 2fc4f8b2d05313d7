"""The row of a framework: its real agents against the scripted model server."""

from __future__ import annotations

import inspect

import pytest

from ci_agent_eval.engine import RunLimits
from tests.frameworks.running import ask, run, talk
from tests.frameworks.scripts import BALANCE, USAGE
from tests.model_server.script import Step


@pytest.fixture
def balance(agents, scripts):
    """The result of an answered question, and its prompt."""
    prompt = scripts.add(*scripts.balance())
    return run(ask(agents.teller, prompt)), prompt


def test_the_agent_is_given_as_it_is(row, agents):
    program = getattr(agents, "PROGRAM", None)
    source = inspect.getsource(agents) if program is None else program.read_text("utf-8")
    assert "ci_agent_eval" not in source
    row.record("glue", is_reached=True)
    row.cells["glue"] = "0" if program is None else str(agents.GLUE_LINES)


def test_every_request_is_seen_once(row, scripts, balance):
    result, prompt = balance
    served = scripts.count_requests(prompt)
    assert served == 2
    seen = len(result.trajectory.agent_turns)
    row.record("requests", is_reached=seen == served, details=f"{seen} of {served}")


def test_turns(row, balance):
    result, prompt = balance
    said = [(turn.role, turn.content) for turn in result.turns]
    assert result.final_response == "$1,500.00."
    expected = [("user", prompt), ("assistant", ""), ("assistant", "$1,500.00.")]
    row.record("turns", is_reached=said == expected, details=said)


def test_tool_calls(row, balance):
    (call,) = balance[0].tool_calls_for("get_balance") or (None,)
    got = call and (call.name, call.arguments)
    row.record(
        "tool_calls", is_reached=got == ("get_balance", {"account": "checking"}), details=got
    )
    has_result = call is not None and "$1,500.00 on checking" in str(call.result)
    row.record("tool_results", is_reached=has_result, details=call)


def test_tool_errors(row, agents, scripts):
    prompt = scripts.add(*scripts.broken_tool())
    result = run(ask(agents.teller, prompt))
    calls = result.tool_calls_for("close_account")
    said = [str(call.error or call.result) for call in calls]
    expected = getattr(agents, "TOOL_ERROR", "checking is not empty")
    row.record("tool_errors", is_reached=expected in "".join(said), details=said)


def test_handoffs(row, agents, scripts):
    if not hasattr(agents, "desk"):
        row.record("handoffs", is_reached=False)
        return
    prompt = scripts.add(*scripts.hand_over(*agents.HANDOFF))
    result = run(ask(agents.desk, prompt))
    assert result.final_response == "$1,500.00.", result.error
    names = [agent.name for agent in result.trajectory.agents if agent.parent]
    row.record("handoffs", is_reached=len(names) == 1, details=result.trajectory)


def test_figures(row, balance):
    result, _ = balance
    usage = result.token_usage
    tokens = usage and (usage.input, usage.output, usage.cached)
    expected = tuple(2 * USAGE[name] for name in ("input", "output", "cached"))
    row.record("tokens", is_reached=tokens == expected, details=tokens)
    row.record("cost", is_reached=result.cost_usd is not None, details=result.cost_usd)
    reasons = [turn.finish_reason for turn in result.trajectory.agent_turns]
    row.record("finish", is_reached=len(reasons) == 2 and all(reasons), details=reasons)


def test_typed_output(row, agents, scripts):
    if not hasattr(agents, "typed"):
        row.record("typed", is_reached=False)
        return
    result = run(ask(agents.typed, scripts.add(*scripts.typed())))
    output = result.turns[-1].typed_output
    row.record("typed", is_reached=output == BALANCE, details=(result.error, output))


def test_a_bad_end_keeps_the_turns_before_it(row, agents, scripts):
    first, _ = scripts.balance()
    prompt = scripts.add(first, *[Step(status=400, code="bad_request")] * 30)
    result = run(ask(agents.teller, prompt))
    kept = result.tool_call_arg("get_balance", "account") == "checking"
    details = (result.stop_reason, result.error, result.turns)
    row.record("bad_end", is_reached=kept and not result.success, details=details)


def test_a_budget_stops_it(row, agents, scripts):
    again = scripts.balance()[0]
    prompt = scripts.add(*[again] * 30)
    result = run(ask(agents.teller, prompt, limits=RunLimits(max_turns=3)))
    served = scripts.count_requests(prompt)
    got = (result.stop_reason, served, len(result.trajectory.agent_turns))
    row.record("budget", is_reached=got == ("max_turns", 3, 3), details=got)


def test_streams(row, agents, scripts):
    if not hasattr(agents, "stream"):
        row.record("streaming", is_reached=False)
        return
    result = run(ask(agents.stream, scripts.add(*scripts.balance())))
    assert result.final_response
    got = [turn.content for turn in result.trajectory.agent_turns]
    row.record("streaming", is_reached=got == ["", "$1,500.00."], details=got)


def test_a_conversation_goes_on(row, agents, scripts):
    prompt = scripts.add(scripts.final("Hello."), scripts.final("Hello again."))

    result = run(talk(agents.teller, prompt, "And now?"))
    row.record(
        "conversation", is_reached=result.final_response == "Hello again.", details=result.error
    )
