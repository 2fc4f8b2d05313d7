"""`make reference`: write the inputs of action.yml and docs/reference.md from the option tables."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from ci_agent_eval.config.inputs import ACTION_INPUTS, ActionInput
from ci_agent_eval.config.options import OPTIONS, Option

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
PAGE = ROOT / "docs/reference.md"


def render_action(text: str) -> str:
    """Return action.yml with its inputs written anew."""
    entries = [_input(i.name, i.help, i.default) for i in (*ACTION_INPUTS, *_as_inputs())]
    return re.sub(
        r"^inputs:\n.*?(?=^outputs:)",
        lambda _: "inputs:\n" + "".join(entries) + "\n",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def render_page(page: str, action: str) -> str:
    """Return the reference page with its tables written anew."""
    outputs = re.findall(
        r"^  ([\w-]+):\n    description: (.*)$", action.partition("\noutputs:\n")[2], re.MULTILINE
    )
    tables = {
        "inputs": _table(
            ("input", "description"), ((f"`{i.name}`", i.help) for i in ACTION_INPUTS)
        ),
        "options": _table(
            ("input and flag", "configuration key", "environment variable", "description"),
            map(_row, OPTIONS),
        ),
        "outputs": _table(
            ("output", "description"), ((f"`{name}`", text.strip("'")) for name, text in outputs)
        ),
    }
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marked.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page)
    return page


def _as_inputs() -> Iterable[ActionInput]:
    return (ActionInput(option.name, option.help) for option in OPTIONS)


def _input(name: str, description: str, default: str) -> str:
    folded = textwrap.indent(textwrap.fill(description, 88, break_on_hyphens=False), " " * 6)
    written = default or '""'
    return f"  {name}:\n    description: >-\n{folded}\n    default: {written}\n"


def _row(option: Option) -> tuple[str, ...]:
    key = ".".join(option.key)
    return f"`{option.name}`", f"`{key}`", f"`{option.variable}`", option.help


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    action = render_action(ACTION.read_text("utf-8"))
    ACTION.write_text(action, encoding="utf-8")
    PAGE.write_text(render_page(PAGE.read_text("utf-8"), action), encoding="utf-8")
    sys.stdout.write("action.yml and docs/reference.md are up to date\n")
