"""Redaction of pytest's reports: tracebacks, captured output, properties."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact every text of a report that is shown or written."""
    report.longrepr = _redact_value(report.longrepr, redact)
    report.sections = [(name, redact(text)) for name, text in report.sections]
    report.user_properties = [
        (name, _redact_value(value, redact)) for name, value in report.user_properties
    ]


def _redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    """Return a value with its texts redacted; pytest's own representations are copied."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return type(value)([_redact_value(item, redact) for item in value])
    # pytest's tracebacks are trees of these objects, which the terminal, xdist and JUnit each
    # read differently, so their structure must stay.
    if not hasattr(value, "toterminal") or not hasattr(value, "__dict__"):
        return value
    found = copy.copy(value)
    for name, item in vars(value).items():
        object.__setattr__(found, name, _redact_value(item, redact))
    return found
