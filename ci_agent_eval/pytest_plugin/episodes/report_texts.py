"""The texts of pytest's reports: redacted, and safe for a terminal and for the log of a runner."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ci_agent_eval.contract.wording import make_lines_printable


def make_failure_printable(report: pytest.TestReport, *, has_colors: bool) -> None:
    """Replace control characters and workflow commands in a failure's message and traceback.

    pytest prints both as they are, and they may contain what an agent said. `has_colors`: pytest
    colours them.
    """
    convert = partial(make_lines_printable, has_colors=has_colors)
    report.longrepr = _convert_texts(report.longrepr, convert)


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact every text of a report that is shown or written."""
    report.longrepr = _convert_texts(report.longrepr, redact)
    report.sections = [(name, redact(text)) for name, text in report.sections]
    report.user_properties = [
        (name, _convert_texts(value, redact)) for name, value in report.user_properties
    ]


def _convert_texts(value: Any, convert: Callable[[str], str]) -> Any:
    """Return a value with its texts converted; pytest's own representations are copied."""
    if isinstance(value, str):
        return convert(value)
    if isinstance(value, list | tuple):
        return type(value)([_convert_texts(item, convert) for item in value])
    # pytest's tracebacks are trees of these objects, which the terminal, xdist and JUnit each
    # read differently, so their structure must stay.
    if not hasattr(value, "toterminal") or not hasattr(value, "__dict__"):
        return value
    found = copy.copy(value)
    for name, item in vars(value).items():
        object.__setattr__(found, name, _convert_texts(item, convert))
    return found
