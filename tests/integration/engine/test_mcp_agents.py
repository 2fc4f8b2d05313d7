"""Tool servers under PydanticAI's own loop: answers arrive, and a server's failure ends the run."""

import asyncio
import os
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ci_agent_eval.engine.declarations import CLIServer, MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.servers.rig import a_bank, a_web_bank
from tests.tables import each_row


def a_model_that_calls(tool: str, arguments: dict[str, Any]) -> FunctionModel:
    """Return a model that calls the tool, and then says what it was told."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        told = [str(part.content) for part in last.parts if part.part_kind == "tool-return"]
        retry = [str(part.content) for part in last.parts if part.part_kind == "retry-prompt"]
        if told or retry:
            return ModelResponse(parts=[TextPart(*(told or retry))])
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])

    return FunctionModel(answer)


def run(server: MCPServer | CLIServer, tool: str, **arguments: Any) -> str:
    async def main() -> str:
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            agent = Agent(a_model_that_calls(tool, arguments), toolsets=[toolset])
            async with asyncio.timeout(120):
                return (await agent.run("What's my checking balance?")).output

    return asyncio.run(main())


@each_row("server", [a_bank(), a_web_bank()], ids=["stdio", "http"])
def test_an_agent_learns_the_balance(server: MCPServer) -> None:
    assert run(server, "get_balance", account="checking") == "$1,500.00"


@each_row("server", [a_bank(), a_web_bank()], ids=["stdio", "http"])
def test_a_crash_ends_the_run_with_a_server_error(server: MCPServer) -> None:
    with pytest.raises(ServerError, match="was lost during the call of crash"):
        run(server, "crash")


def test_a_call_without_an_answer_ends_the_run_with_a_server_error() -> None:
    with pytest.raises(ServerError, match="did not answer the call of hang"):
        run(a_bank(call_timeout_s=2), "hang")


def test_shell_syntax_is_told_to_the_model() -> None:
    git = CLIServer(name="git", command="git")
    assert "there is no shell here: nothing was run" in run(git, "git_execute", args="status; id")


def test_fifty_runs_at_once_share_a_server() -> None:
    async def one(pool: ServerPool, number: int) -> str:
        async with pool.toolset(a_bank(), f"episode {number}") as toolset:
            model = a_model_that_calls("echo", {"text": f"number {number}"})
            return (await Agent(model, toolsets=[toolset]).run("say it")).output

    async def main() -> list[str]:
        async with ServerPool(os.environ) as pool:
            return await asyncio.gather(*(one(pool, number) for number in range(50)))

    assert asyncio.run(main()) == [f"number {number}" for number in range(50)]
