"""`make reference`: write both actions' inputs, the tables of docs and docs/workflows anew."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import click

from ci_agent_eval.app.cli import EXIT_CODES, cli
from ci_agent_eval.app.setup.workflows import WorkflowPlan, build_workflows
from ci_agent_eval.config.inputs import ACTION_INPUTS, REPORT_MODE, RUN_INPUTS, ActionInput
from ci_agent_eval.config.options import OPTIONS, Option

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
REPORT_ACTION = ROOT / "report/action.yml"
PAGES = (ROOT / "docs/reference.md", ROOT / "docs/command-line.md")
WORKFLOWS = ROOT / "docs/workflows"


def render_action(text: str) -> str:
    """Return action.yml with its inputs written anew."""
    return _replace_section(text, "inputs", _inputs(_list_inputs()))


def render_report_action(text: str, action: str) -> str:
    """Return report/action.yml with its inputs, and the outputs of action.yml."""
    kept = (given for given in _list_inputs() if given.name not in {"mode", *RUN_INPUTS})
    text = _replace_section(text, "inputs", _inputs((REPORT_MODE, *kept)))
    outputs = "".join(
        f"  {name}:\n    description: {description}\n"
        f"    value: ${{{{ steps.report.outputs.{name} }}}}\n"
        for name, description in _read_outputs(action)
    )
    return _replace_section(text, "outputs", outputs)


def _read_outputs(action: str) -> list[tuple[str, str]]:
    """Return the names and descriptions of action.yml's outputs, quoted as they are there."""
    return re.findall(
        r"^  ([\w-]+):\n    description: (.*)$", action.partition("\noutputs:\n")[2], re.MULTILINE
    )


def _replace_section(text: str, name: str, entries: str) -> str:
    return re.sub(
        rf"^{name}:\n.*?(?=^\w)",
        lambda _: f"{name}:\n{entries}\n",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def render_page(page: str, action: str) -> str:
    """Return a reference page with its tables written anew."""
    tables = {
        "inputs": _table(
            ("input", "description"), ((f"`{i.name}`", i.help) for i in ACTION_INPUTS)
        ),
        "options": _table(
            ("input and flag", "configuration key", "environment variable", "description"),
            map(_row, OPTIONS),
        ),
        "outputs": _table(
            ("output", "description"),
            ((f"`{name}`", text.strip("'")) for name, text in _read_outputs(action)),
        ),
        "commands": _table(("command", "description"), _list_commands()),
        "exit-codes": _table(
            ("exit code", "meaning"), re.findall(r"^  (\d+) +(.+)$", EXIT_CODES, re.MULTILINE)
        ),
    }
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marked.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page)
    return page


def build_example_workflows() -> dict[str, str]:
    """Return the files of docs/workflows by their names, as `agent-eval init` writes them."""
    forks = build_workflows(WorkflowPlan(forks=True))
    plans = {
        "baseline.yml": WorkflowPlan(),
        "no-docker.yml": WorkflowPlan(docker=False, baseline=False),
        "shards.yml": WorkflowPlan(shards=4, baseline=False),
    }
    single = {name: build_workflows(plan)["agent-eval.yml"] for name, plan in plans.items()}
    publish = forks["agent-eval-publish.yml"]
    return {**single, "fork-run.yml": forks["agent-eval.yml"], "fork-publish.yml": publish}


def _list_commands() -> Iterable[tuple[str, str]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None:
            yield f"`agent-eval {name}`", command.get_short_help_str(limit=1_000)


def _list_inputs() -> tuple[ActionInput, ...]:
    return (*ACTION_INPUTS, *(ActionInput(option.name, option.help) for option in OPTIONS))


def _inputs(inputs: Iterable[ActionInput]) -> str:
    return "".join(map(_input, inputs))


def _input(given: ActionInput) -> str:
    folded = textwrap.indent(textwrap.fill(given.help, 88, break_on_hyphens=False), " " * 6)
    written = given.default or '""'
    return f"  {given.name}:\n    description: >-\n{folded}\n    default: {written}\n"


def _row(option: Option) -> tuple[str, ...]:
    key = ".".join(option.key)
    return f"`{option.name}`", f"`{key}`", f"`{option.variable}`", option.help


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    action = render_action(ACTION.read_text("utf-8"))
    ACTION.write_text(action, encoding="utf-8")
    report_action = render_report_action(REPORT_ACTION.read_text("utf-8"), action)
    REPORT_ACTION.write_text(report_action, encoding="utf-8")
    for path in PAGES:
        path.write_text(render_page(path.read_text("utf-8"), action), encoding="utf-8")
    for name, text in build_example_workflows().items():
        (WORKFLOWS / name).write_text(text, encoding="utf-8")
    sys.stdout.write("action.yml, docs/workflows and the reference pages are up to date\n")
