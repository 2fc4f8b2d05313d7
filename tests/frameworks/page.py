"""`python -m tests.frameworks.page`: write the table of docs/agents.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS, FOLDER, YES

PAGE = Path(__file__).parents[2] / "docs/agents.md"
_TABLE = re.compile(r"(<!-- generated: table -->\n).*?(<!-- end -->)", re.DOTALL)


def load_rows() -> dict[str, Any]:
    """Return the recorded rows by framework, in the order of the table."""
    paths = {name: FOLDER / f"{name}.json" for name in FRAMEWORKS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def render_table() -> str:
    """Return the versions of the frameworks, and the cells that are not reached, with reasons."""
    lines = ["| framework | tested version | differences |", "|---|---|---|"]
    for name, row in load_rows().items():
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
