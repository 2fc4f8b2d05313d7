"""`python -m tests.frameworks.page`: write the tables of docs/frameworks.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.frameworks.examples import EXAMPLES, PublicExample
from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS, FOLDER, YES

PAGE = Path(__file__).parents[2] / "docs/frameworks.md"
LOCKS = Path(__file__).parents[2] / "requirements"
_TABLE = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


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


def render_examples() -> str:
    """Return the table of the public example agents, with the locked versions of their packages."""
    lines = ["| example | published in | its suite |", "|---|---|---|"]
    for name, one in EXAMPLES.items():
        suite = f"[{name}.py](../tests/frameworks/public_examples/{name}.py)"
        lines.append(f"| {one.label} | {one.package} {find_locked_version(one)} | {suite} |")
    return "\n".join(lines)


def find_locked_version(example: PublicExample) -> str:
    """Return the version of an example's package in the locks of its environment."""
    names = (f"{kind}-{example.environment}.txt" for kind in ("examples", "frameworks"))
    text = "".join((LOCKS / name).read_text("utf-8") for name in names)
    found = re.search(rf"^{example.package}==(\S+)", text, re.MULTILINE)
    assert found is not None, example.package
    return found[1]


def render_page(page: str) -> str:
    """Return the page with its tables written anew."""
    renderers = {"table": render_table, "examples": render_examples}
    return _TABLE.sub(lambda found: f"{found[1]}{renderers[found[2]]()}\n{found[3]}", page)


def _render_cell(text: str, reasons: list[str]) -> str:
    if text == YES or text.isdecimal():
        return "✓" if text == YES else text
    if text not in reasons:
        reasons.append(text)
    return f"– ({reasons.index(text) + 1})"


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), encoding="utf-8")
