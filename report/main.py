"""The program of report/action.yml: the action's modes "report" and "publish" without Docker.

    python main.py install    install the pinned dependencies into $RUNNER_TEMP
    python main.py report     do the job that the JSON object in $AGENT_EVAL_INPUTS describes

Two commands, so that nothing that installs gets the token.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout of the action at the version that the workflow names."""


def install(folder: Path) -> int:
    """Install what the locks name, by its hashes; return the exit status.

    uv installs in a third of pip's time, and pip installs uv.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier step, perhaps of another version
    options = ["--quiet", "--require-hashes", "--only-binary", ":all:"]
    lock, tools = ROOT / "requirements/lock.txt", folder / "tools"
    (block,) = re.findall(r"^uv==.*\n(?:[ ].*\n)*", lock.read_text("utf-8"), re.MULTILINE)
    tools.mkdir(parents=True)
    uv_lock = tools / "uv.txt"
    uv_lock.write_text(block, "utf-8")
    pip = [sys.executable, "-I", "-m", "pip", "install", "--disable-pip-version-check", *options]
    status = subprocess.call([*pip, "--target", str(tools), "-r", str(uv_lock)])
    if status != 0:
        return status
    sys.path.insert(0, str(tools))
    from uv import find_uv_bin  # noqa: PLC0415 - just installed

    # A configuration in the workspace could name another index.
    uv = [find_uv_bin(), "pip", "install", "--no-config", "--python", sys.executable, *options]
    uv += ["--target", str(folder / "packages"), "--constraint", str(lock)]
    project = str(ROOT / "pyproject.toml")
    return subprocess.call([*uv, "--requirement", project, "--extra", "inspect"])


def report(folder: Path) -> int:
    """Run the action with its inputs; return its exit status."""
    inputs: dict[str, str] = json.loads(os.environ.pop("AGENT_EVAL_INPUTS"))
    if inputs["mode"] == "run":
        sys.stderr.write(
            "agent-eval: input mode: this action runs no suite; use the action without /report, or "
            "run the suite in a step before this one\n"
        )
        return 2
    os.environ.update({f"INPUT_{name.upper()}": text for name, text in inputs.items()})
    sys.path[:0] = [str(ROOT), str(folder / "packages")]
    sys.argv[1:] = ["action"]
    from ci_agent_eval.__main__ import main as agent_eval  # noqa: PLC0415 - found only now

    return agent_eval()


if __name__ == "__main__":
    commands = {"install": install, "report": report}
    sys.exit(commands[sys.argv[1]](Path(os.environ["RUNNER_TEMP"], "agent-eval-report-action")))
