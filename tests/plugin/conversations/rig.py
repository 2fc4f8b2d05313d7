"""Agents for tests of conversations, and how their episodes ended."""

from __future__ import annotations

AGENTS = """
import asyncio
import pytest
from ci_agent_eval import conversation

log = []

class Echo:
    def respond(self, message):
        return f"you said {message}"

class AsyncEcho:
    async def respond(self, message):
        if message == "hang":
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return f"you said {message}"

    async def aclose(self):
        await asyncio.sleep(0)
        log.append("closed")
"""


def outcomes(ran):
    return {name: e.outcome for name, e in ran.episodes.items()}
