"""PydanticAI agents: typed output, tools of their own that raise, and how long tools take."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from datetime import date
from enum import Enum

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import FunctionToolset

from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.run import run_adapter
from tests.integration.engine.rig import model_of
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.tables import each_row


class Kind(Enum):
    KEY = "key"


class City(BaseModel):
    name: str
    since: date


class Coins(BaseModel):
    usd: int
    kind: Kind = Kind.KEY


ROME = {"name": "Roma ≥", "since": "2020-02-02"}
COINS = {"usd": 3, "kind": "key"}


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


def go(script, *, clock=time.monotonic, cassette_session=None, prompt="hi", limits=None, **options):
    async def once(server):
        async with model_of(server) as model:
            agent = Agent(model, **options)
            return await run_adapter(
                agent, prompt, clock=clock, cassette_session=cassette_session, limits=limits
            )

    with ModelServer(script) as server:
        return asyncio.run(once(server))


def final(tool="final_result", /, **arguments):
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}


FORMS = {
    "model": (City, final(**ROME), ROME),
    "tool": (ToolOutput(City, name="answer"), final("answer", **ROME), ROME),
    "union": ([City, Coins], final("final_result_Coins", **COINS), COINS),
    "list": (list[City], final(response=[ROME, ROME]), [ROME, ROME]),
    "native": (NativeOutput(City), {"text": json.dumps(ROME)}, ROME),
    "native union": (
        NativeOutput([City, Coins]),
        {"text": json.dumps({"result": {"kind": "Coins", "data": COINS}})},
        COINS,
    ),
    "prompted": (PromptedOutput(City), {"text": f"```json\n{json.dumps(ROME)}\n```"}, ROME),
    "number": (int, final(response=7), 7),
}


@each_row(("output", "said", "value"), FORMS.values(), ids=FORMS)
def test_a_typed_output_is_the_final_response_and_no_tool_call(output, said, value):
    script = [{"tool_calls": [call("balance", account="a")]}, {"text": None, **said}]
    result = go(script, output_type=output, tools=[balance], limits=RunLimits(tool_calls=1))
    assert (result.stop_reason, result.outcome) == ("completed", "passed")
    assert json.loads(result.final_response) == value
    assert [call.name for call in result.all_tool_calls] == ["balance"]
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]


def test_an_output_that_does_not_fit_is_shown_with_what_the_model_was_told():
    result = go([final(name="Roma"), final(**ROME)], output_type=City)
    assert [turn.role for turn in result.turns] == ["user", "assistant", "system", "assistant"]
    assert json.loads(result.turns[1].content) == {"name": "Roma"}
    assert "Field required" in result.turns[2].content
    assert (json.loads(result.final_response), result.all_tool_calls) == (ROME, ())


def raises(account: str) -> str:
    """A tool that is broken."""
    raise ZeroDivisionError("by zero")


def test_an_exception_in_a_tool_of_its_own_is_the_agents_failure():
    result = go([{"tool_calls": [call("raises", account="a")]}], tools=[raises])
    assert (result.stop_reason, result.outcome) == ("agent_error", "failed")
    assert result.error.startswith("tool 'raises' broke: ZeroDivisionError: by zero (test_typed_")
    (called,) = result.all_tool_calls
    assert (called.error, called.result) == ("ZeroDivisionError: by zero", None)
    assert called.duration_ms is not None


class Lost(MCPToolset):
    """A tool server that is lost while it is asked."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def get_instructions(self, ctx):
        return None

    async def get_tools(self, ctx):
        tools = await FunctionToolset([balance]).get_tools(ctx)
        return {name: replace(tool, toolset=self) for name, tool in tools.items()}

    async def call_tool(self, name, tool_args, ctx, tool):
        raise ConnectionResetError("the server is gone")


@each_row(
    ("toolset", "said"),
    [
        (MCPToolset("http://127.0.0.1:9/mcp"), "a tool server could not be used: "),
        (Lost("http://127.0.0.1:9/mcp"), "tool 'balance' broke: ConnectionResetError: the server"),
    ],
)
def test_a_tool_server_of_the_agents_that_is_lost_is_no_failure_of_it(toolset, said):
    script = [{"tool_calls": [call("balance", account="a")]}]
    result = go(script, toolsets=[toolset])
    assert (result.stop_reason, result.outcome) == ("server_error", "error")
    assert result.error.startswith(said)
