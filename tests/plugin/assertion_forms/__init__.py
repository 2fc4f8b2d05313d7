"""Assertion forms: how each is written, and what an evaluation records of it."""

from __future__ import annotations

from tests.plugin.assertion_forms import (
    expectations,
    explanations,
    expressions,
    handlers,
    messages,
    places,
    surroundings,
)
from tests.plugin.assertion_forms.form import Form

__all__ = ["FORMS", "Form", "whole_file"]

PREAMBLE = '''\
"""All forms, each a test of its own."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import unittest
import warnings
from contextlib import suppress as forgive
from unittest import mock

import pytest
import pytest as pt
from pytest import raises
'''

FORMS: tuple[Form, ...] = (
    *expressions.FORMS,
    *messages.FORMS,
    *explanations.FORMS,
    *places.FORMS,
    *expectations.FORMS,
    *handlers.FORMS,
    *surroundings.FORMS,
)


def whole_file() -> tuple[str, dict[str, int]]:
    """Return the evaluation that holds them all, and the line on which each begins."""
    text, lines = PREAMBLE, {}
    for each in FORMS:
        text += "\n\n"
        lines[each.name] = text.count("\n") + 1
        text += each.source + "\n"
    return text, lines
