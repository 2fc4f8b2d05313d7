"""Click options that several commands have, most of them of settings; package checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_agent_eval.errors import missing_package_error

if TYPE_CHECKING:
    from ci_agent_eval.config.options import Option

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


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
    """A command with options of settings: `--help` shows the common ones, and `--help-all` all.

    Its settings are those of some tables of the configuration file; the empty name is the top.
    """

    def __init__(
        self,
        *arguments: Any,
        tables: Collection[str] = ("", "gate", "budgets", "compare"),
        without: Collection[str] = (),
        **options: Any,
    ) -> None:
        """Create a command; `without` names settings of the tables that do not apply to it."""
        super().__init__(*arguments, **options)
        text = "Show all options, also the rare ones, and exit."
        flag = {"is_flag": True, "is_eager": True, "expose_value": False}
        self.params.append(click.Option(["--help-all"], callback=_show_all, help=text, **flag))
        self._tables = tables
        self._without = without
        self._headings: dict[str | None, str] = {}
        """The heading of each setting's option."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; those of settings are added now, as their model is slow."""
        if not self._headings:
            for option in self._list_settings():
                self.params.append(parameter := _build_option(option))
                self._headings[parameter.name] = _HEADINGS.get(option.key[0], "Options")
        return super().get_params(ctx)

    def _list_settings(self) -> Iterator[Option]:
        from ci_agent_eval.config.options import OPTIONS  # noqa: PLC0415 - see above

        for option in OPTIONS:
            table = option.key[0] if len(option.key) > 1 else ""
            if table in self._tables and option.name not in self._without:
                yield option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the headings of their settings."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            name, record = parameter.name, parameter.get_help_record(ctx)
            is_shown = name not in self._headings or name in _COMMON or ctx.meta.get(_SHOWS_ALL)
            if isinstance(parameter, click.Option) and record is not None and is_shown:
                groups.setdefault(self._headings.get(name, "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _show_all(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def add_format_option(*formats: str) -> Decorator:
    """Return a decorator that adds `--format`; the first of the formats is the default."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(formats),
        default=formats[0],
        help="Output format.",
    )


_TYPES: Mapping[str, type] = {"number": float, "count": int}


def _build_option(option: Option) -> click.Option:
    name, text = f"--{option.name}", f"{option.help} [{option.variable}]"
    if option.kind == "flag":
        return click.Option([f"{name}/--no-{option.name}"], default=None, help=text)
    if option.kind == "choice":
        return click.Option([name], type=click.Choice(option.choices), help=text)
    return click.Option([name], type=_TYPES.get(option.kind, str), help=text)


settings_file_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Configuration file; default: agent-eval.toml, else pyproject.toml's "
    "[tool.ci_agent_eval].",
)

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
