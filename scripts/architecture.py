"""Write the generated parts of docs/architecture.md from the import contracts in pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
PACKAGE = ROOT / "ci_agent_eval"


def read_levels() -> list[list[str]]:
    """Return the packages of each level, from the top; the entry point above them is left out."""
    levels = [sorted(re.findall(r"\w+", line)) for line in _read_contracts()[0]["layers"]]
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
        rows += [f"| {number} | `{name}` | {_summary(_find_module(name))} |" for name in level]
    return "\n".join(rows)


def list_modules(levels: list[list[str]]) -> str:
    """Return the modules of each package, each with the first sentence of its docstring."""
    lines = []
    for name in (name for level in levels for name in level if (PACKAGE / name).is_dir()):
        paths = sorted(path.relative_to(PACKAGE) for path in (PACKAGE / name).rglob("*.py"))
        paths.remove(Path(name, "__init__.py"))
        lines += [f"<details><summary><code>{name}</code>, {len(paths)} modules</summary>", ""]
        lines += [f"- `{path}`: {_summary(path)}" for path in paths if _summary(path)]
        lines += ["", "</details>"]
    return "\n".join(lines)


def list_contracts() -> str:
    """Return a list of the other contracts: one home for each library, and purity."""
    return "\n".join(f"- {contract['name']}" for contract in _read_contracts()[1:])


def render_page(page: str) -> str:
    """Return the page with its generated parts written anew."""
    levels = read_levels()
    parts = {
        "levels": draw_levels(levels),
        "packages": list_packages(levels),
        "modules": list_modules(levels),
        "contracts": list_contracts(),
    }
    for name, text in parts.items():
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marked.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return page


def _read_contracts() -> list[dict[str, Any]]:
    """Return the contracts of import-linter; the first one holds the levels."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return contracts


def _find_module(name: str) -> Path:
    folder = PACKAGE / name
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _summary(module: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / module).read_bytes())) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    PAGE.write_text(render_page(page), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is up to date\n")
