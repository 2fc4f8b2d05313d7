"""Detect producers of JUnit XML that count in a known way. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Producer = Literal["pytest", "gotestsum", "other"]

_PYTEST_SUITES = ("pytest", "pytest tests")


def detect_producer(attributes: Mapping[str, str], outer: Producer) -> Producer:
    """Return the producer of a suite by its attributes; by default the outer suite's."""
    if attributes.get("name") in _PYTEST_SUITES:
        return "pytest"
    return outer


def is_gotestsum(root: Mapping[str, str], suite: Mapping[str, str]) -> bool:
    """Return whether gotestsum wrote a suite with the property `go.version`.

    go-junit-report may write the property too. Its version 1 declares nothing in the root,
    and its version 2 declares errors in each suite (`internal/junitxml` of gotestsum).
    """
    return "errors" in root and "errors" not in suite
