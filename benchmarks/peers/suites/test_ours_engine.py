"""Ours, with the engine's own agent and the tool on one MCP server over stdio."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from work import INSTRUCTIONS, MODEL, NUMBERS, URL, answer_of, prompt_of

from ci_agent_eval.engine import Agent, MCPServer, Provider

ROOT = os.environ["BENCH_ROOT"]
BANK = MCPServer(
    command=[sys.executable, "-m", "tests.servers.bank"], cwd=ROOT, env={"PYTHONPATH": ROOT}
)
AGENT = Agent(
    Provider(f"openai:{MODEL}", base_url=URL), mcp_servers=[BANK], system_prompt=INSTRUCTIONS
)


@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(aitest_run: Any, number: int) -> None:
    result = await aitest_run(AGENT, prompt_of(number))
    assert result.final_response == answer_of(number)
