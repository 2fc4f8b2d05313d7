"""A program that asks models through the real SDKs, and writes what it got.

`python client.py NAME...`, with the names of ASK; a name that ends in `+stream` asks for a stream.
Addresses and keys come from the environment alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

PROMPT: Any = [{"role": "user", "content": "How much?"}]


def ask_chat(*, stream: bool) -> Iterator[Any]:
    import openai

    with openai.OpenAI() as client:
        answer = client.chat.completions.create(model="gpt-5-mini", messages=PROMPT, stream=stream)
        yield from answer if stream else [answer]


def ask_responses(*, stream: bool) -> Iterator[Any]:
    import openai

    with openai.OpenAI() as client:
        answer = client.responses.create(model="gpt-5-mini", input=PROMPT, stream=stream)
        yield from answer if stream else [answer]


def ask_messages(*, stream: bool) -> Iterator[Any]:
    import anthropic

    with anthropic.Anthropic() as client:
        answer: Any = client.messages.create(
            model="claude-haiku-4-5", max_tokens=100, messages=PROMPT, stream=stream
        )
        yield from answer if stream else [answer]


ASK = {
    "openai-chat": ask_chat,
    "openai-responses": ask_responses,
    "anthropic-messages": ask_messages,
}


def read(name: str) -> Iterator[Any]:
    """Yield each object that the SDK returns, or its error."""
    api, _, stream = name.partition("+")
    try:
        for item in ASK[api](stream=bool(stream)):
            yield item.model_dump(mode="json", exclude_unset=True)
    except Exception as error:  # noqa: BLE001 - shown to the test
        yield {"error": type(error).__name__, "text": str(error)}


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        for value in read(asked):
            print(json.dumps([asked, value]), flush=True)  # noqa: T201
