"""Functions that ask a model with a library that has no adapter: their requests are recorded."""

from __future__ import annotations

import json
import os

MODEL = "gpt-5-mini"


def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"$1,500.00 on {account}"


async def agent_framework(message: str) -> str:
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    agent = Agent(client=OpenAIChatCompletionClient(model=MODEL), tools=[get_balance])
    return (await agent.run(message)).text


async def claude_agent_sdk(message: str) -> str:
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

    @tool("get_balance", "The balance of an account.", {"account": str})
    async def balance(arguments: dict) -> dict:
        return {"content": [{"type": "text", "text": get_balance(**arguments)}]}

    options = ClaudeAgentOptions(
        model="claude-sonnet-4-5",
        tools=[],
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[balance])},
        allowed_tools=["mcp__desk__get_balance"],
        setting_sources=[],
    )
    answer = ""
    async for received in query(prompt=message, options=options):
        answer = getattr(received, "result", None) or answer
    return answer


async def dspy(message: str) -> str:
    import dspy

    address = os.environ["OPENAI_BASE_URL"]
    model = dspy.LM(f"openai/{MODEL}", engine="lm15", api_base=address, cache=False, num_retries=0)
    with dspy.context(lm=model):
        found = await dspy.Predict("question -> account").acall(question=message)
        answering = dspy.Predict("question, account -> answer")
        return answering(question=message, account=found.account).answer


async def haystack(message: str) -> str:
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function

    tools = [create_tool_from_function(get_balance)]
    agent = Agent(chat_generator=OpenAIChatGenerator(model=MODEL), tools=tools)
    return (await agent.run_async([ChatMessage.from_user(message)]))["last_message"].text


async def litellm(message: str) -> str:
    from litellm import acompletion

    parameters = {"type": "object", "properties": {"account": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "get_balance", "parameters": parameters}}]
    messages = [{"role": "user", "content": message}]
    while True:
        response = await acompletion(f"openai/{MODEL}", messages, tools=tools)
        answer = response.choices[0].message
        if not answer.tool_calls:
            return answer.content
        messages.append(answer.model_dump(exclude_none=True))
        for call in answer.tool_calls:
            result = get_balance(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def mirascope(message: str) -> str:
    from mirascope import llm

    @llm.tool
    async def get_balance(account: str) -> str:
        """The balance of an account."""
        return f"$1,500.00 on {account}"

    response = await llm.Model(f"openai/{MODEL}").call_async(message, tools=[get_balance])
    while response.tool_calls:
        response = await response.resume(await response.execute_tools())
    return response.text()


async def semantic_kernel(message: str) -> str:
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.functions import KernelFunctionFromMethod, KernelPlugin, kernel_function

    balance = KernelFunctionFromMethod(kernel_function(get_balance), plugin_name="desk")
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id=MODEL),
        name="teller",
        plugins=[KernelPlugin("desk", functions=[balance])],
    )
    return str(await agent.get_response(message))
