"""Click options that several commands have, most of them from the option table; package checks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ci_agent_eval.config.options import OPTIONS, Option, OptionKind
from ci_agent_eval.errors import missing_package_error

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


_SETTINGS = {option.name.replace("-", "_"): option for option in OPTIONS}
_COMMON = frozenset(
    {"suite", "report_dir", "min_pass_rate", "max_error_rate", "baseline", "confirm"}
    | {"total_cost_usd", "comment", "report_url"}
)
"""The settings that `--help` shows; `--help-all` shows all."""
_HEADINGS = {
    "gate": "Gate",
    "budgets": "Budgets of the suite",
    "compare": "Comparison with a baseline",
    "publish": "Publication",
}
_SHOWS_ALL = "ci_agent_eval.help_all"


class SettingsCommand(click.Command):
    """A command whose `--help` shows the common options in groups, and `--help-all` all."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        text = "Show all options, also the rare ones, and exit."
        flag = {"is_flag": True, "is_eager": True, "expose_value": False}
        self.params.append(click.Option(["--help-all"], callback=_show_all, help=text, **flag))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the headings of their settings."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            name, record = parameter.name or "", parameter.get_help_record(ctx)
            is_shown = name not in _SETTINGS or name in _COMMON or ctx.meta.get(_SHOWS_ALL)
            if isinstance(parameter, click.Option) and record is not None and is_shown:
                groups.setdefault(_find_heading(name), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _show_all(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _find_heading(name: str) -> str:
    setting = _SETTINGS.get(name)
    return _HEADINGS.get(setting.key[0], "Options") if setting else "Options"


def add_format_option(*formats: str) -> Decorator:
    """Return a decorator that adds `--format`; the first of the formats is the default."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(formats),
        default=formats[0],
        help="Output format.",
    )


def _click_option(option: Option) -> Decorator:
    name, text = f"--{option.name}", f"{option.help} [{option.variable}]"
    if option.kind == "flag":
        return click.option(f"{name}/--no-{option.name}", default=None, help=text)
    if option.kind == "choice":
        return click.option(name, type=click.Choice(option.choices), help=text)
    return click.option(name, type=_TYPES.get(option.kind, str), help=text)


_TYPES: dict[OptionKind, type] = {"number": float, "count": int}


def add_settings_options(*, publishing: bool, without: Collection[str] = ()) -> Decorator:
    """Return a decorator that adds the report folder and the publishing or all other options.

    `without` names options that do not apply to the command.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(OPTIONS):
            is_meant = option.name == "report-dir" or (option.key[0] == "publish") is publishing
            if is_meant and option.name not in without:
                command = _click_option(option)(command)
        config = click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="Configuration file; default: agent-eval.toml, else pyproject.toml's "
            "[tool.ci_agent_eval].",
        )
        return config(command)

    return decorate


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="YAML file with a section `session`; default: agent-eval-steering.yaml, if it exists.",
)

enabled_option = click.option(
    "--enable-pytest-full-suite-steering/--disable-pytest-full-suite-steering",
    "enabled",
    default=None,
    help="Block full-suite runs once in each session; default: off. "
    "[PYTEST_FULL_SUITE_STEERING_ENABLED]",
)


def add_steering_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and the two flags: parameters `config` and `enabled`."""
    return config_option(enabled_option(command))


def require_packages(user: str, extra: str, *modules: str) -> None:
    """Raise InputError if a package that `user` needs is not installed."""
    for module in modules:
        if find_spec(module) is None:
            raise missing_package_error(user, f"the package {module}", extra)
