"""OpenAI's coding agent Codex, as it is installed from npm; its tools are those of a shell."""

import os
from collections.abc import Mapping
from pathlib import Path

from ci_agent_eval.engine import CommandAgent

FOLDER = Path(__file__).parents[2]
COMMAND = f"""exec {FOLDER}/node_modules/.bin/codex exec --skip-git-repo-check --ephemeral \\
    --model gpt-5-mini --dangerously-bypass-approvals-and-sandbox \\
    -c openai_base_url="\\"$OPENAI_BASE_URL\\"" -c analytics.enabled=false """
REPLACED = (
    r"Chunk ID: \w+ => Chunk ID: ID",
    r"Wall time: [\d.]+ => Wall time: 0",
)
"""Rules for what differs from run to run in the results of its tool."""


def declare(folder: Path, options: str = "", environ: Mapping[str, str] = os.environ):
    """Return Codex in a folder, with its state there."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {
        "CODEX_API_KEY": environ["OPENAI_API_KEY"],
        "CODEX_HOME": str(home),
        "OPENAI_BASE_URL": environ["OPENAI_BASE_URL"],
    }
    command = ["sh", "-c", f"{COMMAND} {options} -"]
    return CommandAgent(command, cwd=folder, env=env, stdout="text")
