"""`python -m tests.steering_agents.page`: write the table of docs/steering-agents.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROWS = Path(__file__).with_name("rows")
PAGE = Path(__file__).parents[2] / "docs/steering-agents.md"
_TABLE = re.compile(r"(<!-- generated -->\n).*?(<!-- end -->)", re.DOTALL)

LABELS = {
    "claude-code": "Claude Code",
    "codex": "Codex CLI",
    "gemini": "Gemini CLI",
    "copilot": "Copilot CLI",
    "qwen-code": "Qwen Code",
    "opencode": "opencode",
}
COLUMNS = {
    "held": "held once, with the message",
    "goes_on": "the agent goes on",
    "targeted": "targeted command runs",
    "insisted": "insisted call goes through",
}
REASONS = {
    ("gemini", "proxy"): "the proxy does not read Gemini's format, so the calls pass; use the hook",
}
"""Cells that are not reached."""


def render_table() -> str:
    """Return the table of the recorded rows."""
    lines = [
        f"| agent | version | steered by | {' | '.join(COLUMNS.values())} | other hosts |",
        f"|---|---|---|{'---|' * len(COLUMNS)}---|",
    ]
    for agent, label in LABELS.items():
        for where in ("hook", "proxy"):
            row = json.loads((ROWS / f"{agent}-{where}.json").read_text())
            reason = REASONS.get((agent, where))
            cells = [f"no: {reason}", "", "", ""] if reason else [_mark(row[c]) for c in COLUMNS]
            cells.append("tried, refused" if row["tries_other_hosts"] else "none")
            lines.append(f"| {label} | {row['version']} | {where} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _mark(is_reached: bool) -> str:
    return "yes" if is_reached else "no"


def main() -> None:
    """Write the page."""
    text = PAGE.read_text()
    PAGE.write_text(_TABLE.sub(lambda match: f"{match[1]}{render_table()}{match[2]}", text))


if __name__ == "__main__":
    main()
