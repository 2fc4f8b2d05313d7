"""`make line-budgets`: hold each package against its lines in line_budgets.toml.

A package may grow after a change of its number there, which a reviewer sees.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Print the packages over their budgets, and return the exit status."""
    budgets: dict[str, int] = tomllib.loads((ROOT / "line_budgets.toml").read_text())["lines"]
    lines: Counter[str] = Counter()
    for file in (ROOT / "ci_agent_eval").rglob("*.py"):
        package, *inside = file.relative_to(ROOT / "ci_agent_eval").parts
        lines[package if inside else "ci_agent_eval"] += len(file.read_text("utf-8").splitlines())
    over = {name: count for name, count in lines.items() if count > budgets.get(name, 0)}
    for name, count in sorted(over.items()):
        print(
            f"{name} has {count} lines, and line_budgets.toml allows {budgets.get(name, 0)};"
            " make it smaller, or raise the number there and say why in the commit"
        )
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
