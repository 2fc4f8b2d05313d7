"""`make docs`: write the inputs of the actions, the tables of docs/reference.md, a workflow."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import click
import pytest

from ci_agent_eval.app.cli import EXIT_CODES, cli
from ci_agent_eval.app.setup.first_files import build_workflow
from ci_agent_eval.config.inputs import ACTION_INPUTS, REPORT_MODE, RUN_INPUTS, ActionInput
from ci_agent_eval.config.options import INPUT_OPTIONS, OPTIONS, Option
from ci_agent_eval.pytest_plugin import pytest_addoption

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
REPORT_ACTION = ROOT / "report/action.yml"
PAGE = ROOT / "docs/reference.md"
WORKFLOW = ROOT / "docs/workflows/baseline.yml"


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
            ("input", "description"), ((f"`{i.name}`", i.help) for i in _list_inputs())
        ),
        "options": _table(
            ("flag", "configuration key", "environment variable", "description"),
            map(_row, OPTIONS),
        ),
        "outputs": _table(
            ("output", "description"),
            ((f"`{name}`", text.strip("'")) for name, text in _read_outputs(action)),
        ),
        "commands": _table(("command", "description"), _list_commands()),
        "flags": _table(("command", "option", "description"), _list_flags(cli, "agent-eval")),
        "pytest": _table(("option", "ini setting", "description"), _list_pytest_options()),
        "exit-codes": _table(
            ("exit code", "meaning"), re.findall(r"^  (\d+) +(.+)$", EXIT_CODES, re.MULTILINE)
        ),
    }
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marked.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page)
    return page


def _list_commands() -> Iterable[tuple[str, str]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None:
            yield f"`agent-eval {name}`", command.get_short_help_str(limit=1_000)


def _list_flags(group: click.Group, prefix: str) -> Iterator[tuple[str, ...]]:
    """Yield the flags of each command that are not settings."""
    settings = {f"--{option.name}" for option in OPTIONS}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _list_flags(command, f"{prefix} {name}")
        elif command is not None:
            for flag in command.params:
                if isinstance(flag, click.Option) and not settings & set(flag.opts):
                    names = ", ".join(f"`{word}`" for word in (*flag.opts, *flag.secondary_opts))
                    yield f"`{prefix} {name}`", names, flag.help or ""


class _OptionList:
    """Collects the options and ini settings that the plugin adds to pytest's parser."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}
        self.settings: dict[str, str] = {}

    def getgroup(self, *_: str) -> _OptionList:
        return self

    def addoption(self, name: str, *, help: str = argparse.SUPPRESS, **_: object) -> None:  # noqa: A002
        if help != argparse.SUPPRESS:
            self.options[name] = help

    def addini(self, name: str, help: str, *_: object, **__: object) -> None:  # noqa: A002
        self.settings[name] = help


def _list_pytest_options() -> Iterator[tuple[str, str, str]]:
    """Yield the plugin's options, each with the ini setting that says the same, then the others."""
    found = _OptionList()
    pytest_addoption(cast("pytest.Parser", found))
    for name, text in found.options.items():
        setting = name.removeprefix("--").replace("-", "_")
        is_both = found.settings.pop(setting, None) is not None
        yield f"`{name}`", f"`{setting}`" if is_both else "", text.replace("%%", "%")
    for name, text in found.settings.items():
        yield "", f"`{name}`", text


def _list_inputs() -> tuple[ActionInput, ...]:
    return (*ACTION_INPUTS, *(ActionInput(option.name, option.help) for option in INPUT_OPTIONS))


def _inputs(inputs: Iterable[ActionInput]) -> str:
    return "".join(map(_input, inputs))


def _input(given: ActionInput) -> str:
    folded = textwrap.indent(textwrap.fill(given.help, 88, break_on_hyphens=False), " " * 6)
    written = given.default or '""'
    return f"  {given.name}:\n    description: >-\n{folded}\n    default: {written}\n"


def _row(option: Option) -> tuple[str, ...]:
    key = ".".join(option.key)
    return f"`--{option.name}`", f"`{key}`", f"`{option.variable}`", option.help


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    action = render_action(ACTION.read_text("utf-8"))
    ACTION.write_text(action, encoding="utf-8")
    report_action = render_report_action(REPORT_ACTION.read_text("utf-8"), action)
    REPORT_ACTION.write_text(report_action, encoding="utf-8")
    PAGE.write_text(render_page(PAGE.read_text("utf-8"), action), encoding="utf-8")
    WORKFLOW.write_text(build_workflow(), encoding="utf-8")
    sys.stdout.write("action.yml, the workflow and the reference are up to date\n")
