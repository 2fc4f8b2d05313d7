"""The rules of the suite's steering settings, for checks of its episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.model import Rules


def build_rules_loader(root: Path) -> Callable[[], Rules]:
    """Return a function that reads the rules of the settings file in `root`, at its first call.

    The function raises InputError if the file is invalid.
    """

    @cache
    def load_rules() -> Rules:
        from ci_agent_eval.steering.pytest_project import build_project_finder  # noqa: PLC0415 - as said
        from ci_agent_eval.steering.settings_loader import load_steering_settings  # noqa: PLC0415 - inert until used

        # Variables of the environment set no rules.
        rules = load_steering_settings(root=root, environ={}).rules
        return replace(rules, find_project=build_project_finder(root))

    return load_rules
