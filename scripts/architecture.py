"""`make architecture`: write the generated parts of docs/architecture.md from .importlinter."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
PACKAGE = ROOT / "ci_agent_eval"


def read_levels() -> list[list[str]]:
    """Return the packages of each level, from the top; the entry point above them is left out."""
    lines = _contracts()["importlinter:contract:levels"]["layers"].split("\n")
    levels = [sorted(re.findall(r"\w+", line)) for line in lines if line.strip()]
    return [level for level in levels if level != ["__main__"]]


def draw_levels(levels: list[list[str]]) -> str:
    """Return the levels as a Mermaid flowchart: each package may import all below it."""
    lines = ["```mermaid", "flowchart TB"]
    for number, level in enumerate(levels, start=1):
        lines.append(f'  subgraph level{number}[" "]')
        lines += [f'    {name}["{name}"]' for name in level]
        lines.append("  end")
    lines += [f"  level{number} --> level{number + 1}" for number in range(1, len(levels))]
    return "\n".join([*lines, "```"])


def list_packages(levels: list[list[str]]) -> str:
    """Return a table of the packages with the first line of each docstring."""
    rows = ["| level | package | content |", "|---:|---|---|"]
    for number, level in enumerate(levels, start=1):
        rows += [f"| {number} | `{name}` | {_summary(name)} |" for name in level]
    return "\n".join(rows)


def list_contracts() -> str:
    """Return a list of the other contracts: one home for each library, and purity."""
    names = [
        section["name"].replace("\n", " ")
        for title, section in _contracts().items()
        if title.startswith("importlinter:contract:") and not title.endswith(":levels")
    ]
    return "\n".join(f"- {name}" for name in names)


def render_page(page: str) -> str:
    """Return the page with its generated parts written anew."""
    levels = read_levels()
    parts = {
        "levels": draw_levels(levels),
        "packages": list_packages(levels),
        "contracts": list_contracts(),
    }
    for name, text in parts.items():
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marked.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return page


def _contracts() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / ".importlinter", encoding="utf-8")
    return found


def _summary(name: str) -> str:
    folder = PACKAGE / name
    module = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(module.read_bytes())) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    PAGE.write_text(render_page(page), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is up to date\n")
