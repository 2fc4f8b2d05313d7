"""The checks that a branch requires before a merge, read from GitHub's answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def list_required_checks(
    branch: Mapping[str, Any], rules: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the names of the checks that a branch's protection and its rulesets require.

    Raises KeyError, TypeError or AttributeError for answers of another shape.
    """
    protected = branch["protection"].get("required_status_checks") or {}
    return tuple(sorted({*protected.get("contexts", ()), *_list_ruled_checks(rules)}))


def _list_ruled_checks(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for rule in rules:
        if rule["type"] == "required_status_checks":
            for check in rule["parameters"]["required_status_checks"]:
                yield check["context"]
