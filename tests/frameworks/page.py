"""`python -m tests.frameworks.page`: write the table of docs/frameworks.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS, FOLDER, YES

PAGE = Path(__file__).parents[2] / "docs/frameworks.md"
_TABLE = re.compile(r"(<!-- generated: table -->\n).*?(<!-- end -->)", re.DOTALL)


def load_rows() -> dict[str, Any]:
    """Return the recorded rows by framework, in the order of the table."""
    paths = {name: FOLDER / f"{name}.json" for name in FRAMEWORKS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def render_table() -> str:
    """Return the table, and below it the reasons of the cells that are not reached."""
    reasons: list[str] = []
    lines = [
        f"| framework | version | {' | '.join(COLUMNS.values())} |",
        f"|---|---|{':-:|' * len(COLUMNS)}",
    ]
    for name, row in load_rows().items():
        cells = [_render_cell(text, reasons) for text in row["cells"].values()]
        version = row["version"].replace(" ", " ")
        lines.append(f"| {FRAMEWORKS[name].label} | {version} | {' | '.join(cells)} |")
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *notes])


def render_page(page: str) -> str:
    """Return the page with its table written anew."""
    return _TABLE.sub(lambda found: f"{found[1]}{render_table()}\n{found[2]}", page)


def _render_cell(text: str, reasons: list[str]) -> str:
    if text == YES or text.isdecimal():
        return "✓" if text == YES else text
    if text not in reasons:
        reasons.append(text)
    return f"– ({reasons.index(text) + 1})"


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), encoding="utf-8")
