"""The bank's agent of agent.mjs, which is written with Vercel's AI SDK for JavaScript."""

import os
from pathlib import Path

from ci_agent_eval.engine import CommandAgent

FOLDER = Path(__file__).parents[1]
PROGRAM = FOLDER / "agent.mjs"
GLUE_LINES = 1
"""The declaration of the program."""


def declare(mode: str) -> CommandAgent:
    env = {name: os.environ[name] for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL")}
    command = ["node", "agent.mjs", mode]
    return CommandAgent(command, cwd=FOLDER, env=env, stdin="json", stdout="text")


teller, typed, stream = (declare(mode) for mode in ("teller", "typed", "stream"))
