"""`make demo`: run the main job on the example, check its verdict, and picture its comment.

The example holds one failing scenario and one that is over its budget, so the main job
has to exit 1. This script exits 0 only if it did, for exactly these two reasons.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from browser_window import find_browser, open_browser
from comment_pictures import WIDTHS, picture_comment

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
        "\nthe gate fails (exit 1). A pull request would show comment.md of agent-eval-report/.\n"
        "\nReport:  agent-eval-report/report.html"
    )
    print(f"Picture: {make_picture(ROOT / 'agent-eval-report/comment.md')}")
    return 0


def make_picture(comment: Path) -> str:
    """Make a picture of the comment as GitHub shows it; return its path, or why there is none."""
    browser_path = find_browser()
    if browser_path is None:
        return "none, as there is no Chromium here; `sudo bash scripts/chromium` installs it"
    picture = comment.with_suffix(".png")
    try:
        with open_browser(browser_path) as browser:
            picture_comment(browser, comment, picture, WIDTHS[""])
    except Exception as error:  # noqa: BLE001 - Playwright's own program may fail to start, too
        lines = str(error).splitlines() or [type(error).__name__]
        return f"none, as Chromium failed: {lines[0]}"
    return str(picture.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
