"""A bank's agent, written with nothing but Anthropic's SDK, in synchronous code."""

import anthropic
from pydantic import BaseModel


class Balance(BaseModel):
    account: str
    dollars: float


def get_balance(account: str) -> str:
    return f"$1,500.00 on {account}"


def close_account(account: str) -> str:
    raise ValueError(f"{account} is not empty")


OPTIONS = {"model": "claude-haiku-4-5", "max_tokens": 1000}
FUNCTIONS = {"get_balance": get_balance, "close_account": close_account}
SCHEMA = {"type": "object", "properties": {"account": {"type": "string"}}}
TOOLS = [{"name": name, "input_schema": SCHEMA} for name in FUNCTIONS]
client = anthropic.Anthropic(max_retries=0)


def teller(message: str, history: list) -> str:
    messages = [*history, {"role": "user", "content": message}]
    while True:
        answer = client.messages.create(messages=messages, tools=TOOLS, **OPTIONS)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return answer.content[0].text
        results = [run_tool(call) for call in calls]
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": results},
        ]


def run_tool(call) -> dict:
    result = {"type": "tool_result", "tool_use_id": call.id}
    try:
        return {**result, "content": FUNCTIONS[call.name](**call.input)}
    except ValueError as error:
        return {**result, "content": str(error), "is_error": True}


def typed(message: str) -> str:
    messages = [{"role": "user", "content": message}]
    return (
        client.messages.parse(messages=messages, output_format=Balance, **OPTIONS).content[0].text
    )


def stream(message: str) -> str:
    messages = [{"role": "user", "content": message}]
    while True:
        with client.messages.stream(messages=messages, tools=TOOLS, **OPTIONS) as events:
            answer = events.get_final_message()
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return answer.content[0].text
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [run_tool(call) for call in calls]},
        ]
