"""`make demo`: run the main job on the example, and check its verdict.

The example holds one failing scenario and one that is over its budget, so the main job
has to exit 1. This script exits 0 only if it did, for exactly these two reasons.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "ci_agent_eval", "run", "examples/refund_desk"]
REASONS = {("scenario", "refund_over_limit"), ("budget", "refund_by_email")}


def main() -> int:
    """Run the example, say what it shows, and return the exit status."""
    print("$ agent-eval run examples/refund_desk\n", flush=True)
    status = subprocess.run(COMMAND, cwd=ROOT, check=False).returncode
    verdict = ROOT / "agent-eval-report/verdict.json"
    reasons = json.loads(verdict.read_text())["verdict"]["reasons"] if verdict.exists() else []
    shown = {(reason["kind"], reason["scenario_id"]) for reason in reasons}
    if status != 1 or shown != REASONS:
        print(f"\nmake demo: expected exit 1 for {sorted(REASONS)}, but got exit {status}, {shown}")
        return 1
    print(
        "\nmake demo: as expected. The example has one failing scenario and one over its budget, so"
        "\nthe gate fails (exit 1). A pull request would show agent-eval-report/comment.md."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
