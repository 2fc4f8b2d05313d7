"""`python -m tests.steering_agents.page`: write the table of docs/steering.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROWS = Path(__file__).with_name("rows.json")
PAGE = Path(__file__).parents[2] / "docs/steering.md"
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
REASONS = {("gemini", "proxy"): "no: it does not read Gemini's format"}
"""Cells that are not reached."""


def render_table() -> str:
    """Return the table of the recorded rows."""
    recorded = json.loads(ROWS.read_text())
    lines = ["| agent | version | hook | proxy | other hosts |", "|---|---|---|---|---|"]
    for agent, label in LABELS.items():
        rows = {where: recorded[f"{agent}-{where}"] for where in ("hook", "proxy")}
        cells = [REASONS.get((agent, where)) or _mark(row) for where, row in rows.items()]
        tries = any(row["tries_other_hosts"] for row in rows.values())
        hosts = "tried, refused" if tries else "none"
        lines.append(f"| {label} | {rows['hook']['version']} | {' | '.join(cells)} | {hosts} |")
    return "\n".join(lines) + "\n"


def _mark(row: dict[str, bool]) -> str:
    missed = [label for column, label in COLUMNS.items() if not row[column]]
    return f"not: {', '.join(missed)}" if missed else "yes"


def main() -> None:
    """Write the page."""
    text = PAGE.read_text()
    PAGE.write_text(_TABLE.sub(lambda match: f"{match[1]}{render_table()}{match[2]}", text))


if __name__ == "__main__":
    main()
