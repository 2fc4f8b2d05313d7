"""`agent-eval steer` in this process: what a process would answer, without its start-up."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.app.cli import main
from ci_agent_eval.steering.hook.command import main as hook

_FOREIGN = ("PYTEST_FULL_SUITE", "CLAUDE_", "CODEX_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR")


def run_steer(
    folder: Path, *words: str, given: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a folder as if nobody had configured steering or an agent."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        is_hook = words[0] == "hook" and "--help" not in words
        code = hook(words[1:]) if is_hook else main(["steer", *words])
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue())
    return subprocess.CompletedProcess(words, code, *texts)
