"""What every Python suite here shares: the prompts, and the answers they must give.

The process that measures says by the environment where the model is, and how much to do.
"""

from __future__ import annotations

import os

URL = os.environ["BENCH_URL"]
EPISODES = int(os.environ["BENCH_EPISODES"])
AT_ONCE = int(os.environ["BENCH_AT_ONCE"])
INSTRUCTIONS = "Be brief."
MODEL = "gpt-5-mini"
NUMBERS = range(EPISODES)


def prompt_of(number: int) -> str:
    """Return a prompt that no other episode has."""
    return f"balance of account {number}"


def answer_of(number: int) -> str:
    """Return what the model answers in the end, when the tool was called in between."""
    return f"The tool said {prompt_of(number)}"


async def echo(text: str) -> str:
    """Return the text."""
    return text
