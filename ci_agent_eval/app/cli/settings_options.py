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
