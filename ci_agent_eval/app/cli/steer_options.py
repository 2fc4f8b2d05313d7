"""Shared options and package checks of the steering commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ci_agent_eval.errors import missing_package_error

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

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
