"""Make the cassettes anew from a SCRIPTED stand-in for a model's API, on the loopback.

From the project's root:  python examples/banking/record.py
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.model_server import ModelServer  # noqa: E402 - the path is set above
from tests.model_server.script import Step, call  # noqa: E402 - as above

SCRIPT = {
    "checking balance": [
        Step(tool_calls=[call("get_balance", account="checking")]),
        Step(text="Your checking balance is {tool}."),
    ],
    "$200": [
        Step(tool_calls=[call("transfer", source="savings", target="checking", amount=200)]),
        Step(text="Done: {tool}."),
        Step(tool_calls=[call("get_balance", account="savings")]),
        Step(text="Savings now holds {tool}."),
    ],
    "$9,000": [
        Step(tool_calls=[call("transfer", source="checking", target="savings", amount=9000)]),
        Step(text="I did not move it: there is not enough money in checking."),
    ],
}

with ModelServer(SCRIPT) as server:
    environ = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "pytest", "-q", "examples/banking", "--cassette=record"]
    sys.exit(subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode)
