"""A bank's agent, written with nothing but OpenAI's SDK: its chat completions."""

import json

from openai import AsyncOpenAI
from pydantic import BaseModel


class Balance(BaseModel):
    account: str
    dollars: float


def get_balance(account: str) -> str:
    return f"$1,500.00 on {account}"


def close_account(account: str) -> str:
    return f"error: {account} is not empty"


MODEL = "gpt-5-mini"
FUNCTIONS = {"get_balance": get_balance, "close_account": close_account}
PARAMETERS = {
    "type": "object",
    "properties": {"account": {"type": "string"}},
    "required": ["account"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS, "strict": True}}
    for name in FUNCTIONS
]
client = AsyncOpenAI(max_retries=0)


async def teller(message: str, history: list) -> str:
    messages = [*history, {"role": "user", "content": message}]
    while True:
        completion = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=TOOLS
        )
        answer = completion.choices[0].message
        if not answer.tool_calls:
            return answer.content
        messages.append(answer.model_dump(exclude_none=True))
        messages += [run_tool(call) for call in answer.tool_calls]


def run_tool(call) -> dict:
    result = FUNCTIONS[call.function.name](**json.loads(call.function.arguments))
    return {"role": "tool", "tool_call_id": call.id, "content": result}


async def typed(message: str) -> str:
    messages = [{"role": "user", "content": message}]
    completion = await client.chat.completions.parse(
        model=MODEL, messages=messages, response_format=Balance
    )
    return completion.choices[0].message.content


async def stream(message: str) -> str:
    messages = [{"role": "user", "content": message}]
    while True:
        options = {"model": MODEL, "messages": messages, "tools": TOOLS}
        async with client.chat.completions.stream(**options) as events:
            answer = (await events.get_final_completion()).choices[0].message
        if not answer.tool_calls:
            return answer.content
        calls = [
            {"id": one.id, "type": "function", "function": one.function.model_dump()}
            for one in answer.tool_calls
        ]
        messages.append({"role": "assistant", "tool_calls": calls})
        messages += [run_tool(call) for call in answer.tool_calls]
