"""`python -m tests.frameworks.page`: write the table of docs/agents.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS, YES, load_rows

PAGE = Path(__file__).parents[2] / "docs/agents.md"
_TABLE = re.compile(r"(<!-- generated: table -->\n).*?(<!-- end -->)", re.DOTALL)


def order_rows() -> dict[str, Any]:
    """Return the recorded rows by framework, in the order of the table."""
    rows = load_rows()
    return {name: rows[name] for name in FRAMEWORKS if name in rows}


def render_table() -> str:
    """Return the versions of the frameworks, and the cells that are not reached, with reasons."""
    lines = ["| framework | tested version | differences |", "|---|---|---|"]
    for name, row in order_rows().items():
        missing: dict[str, list[str]] = {}
        for column, text in row["cells"].items():
            if text != YES and not text.isdecimal():
                missing.setdefault(text, []).append(COLUMNS[column])
        reasons = "; ".join(f"{', '.join(names)} ({text})" for text, names in missing.items())
        lines.append(f"| {FRAMEWORKS[name].label} | {row['version']} | {reasons} |")
    return "\n".join(lines)


def render_page(page: str) -> str:
    """Return the page with its table written anew."""
    return _TABLE.sub(lambda found: f"{found[1]}{render_table()}\n{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), encoding="utf-8")
