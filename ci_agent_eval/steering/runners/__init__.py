"""Rules of test runners other than pytest, in a data file for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ci_agent_eval.steering.policy.model import Arity, RunnerProgram

RUNNER_NAMES = ("cargo", "go", "mvn", "npm", "tox")
"""The runners that the settings can switch on; each has a file `NAME.toml`."""

_OPTION_SETS = (
    "narrowing", "nothing", "selecting", "whole", "whole_values", "goals", "wrappers",
)  # fmt: skip
"""The keys whose values are words separated by blanks; so are those of `_ARITIES`."""
_ARITIES: Mapping[str, Arity] = {
    "selecting": "0",
    "nothing": "0",
    "narrowing": "0",
    "valued": "1",
    "optional": "?",
}
_OTHER_KEYS = ("required", "takes_targets", "passes_to")


def load_runners(names: Iterable[str]) -> tuple[RunnerProgram, ...]:
    """Return the programs of runners, with their rules."""
    return tuple(program for name in names for program in _load_runner(name))


@cache
def _load_runner(name: str) -> tuple[RunnerProgram, ...]:
    import tomllib  # noqa: PLC0415 - most settings name no runner

    document = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    tables = {table["names"][0]: table for table in document["programs"]}
    return tuple(
        _build_program(name, document, table, tables.get(table.get("include"), {}))
        for table in tables.values()
    )


def _build_program(
    runner: str, document: Mapping[str, Any], table: Mapping[str, Any], included: Mapping[str, Any]
) -> RunnerProgram:
    """Build a program from its table, with the options of the included one but the excluded."""
    excluded = set(table.get("excluded", "").split())
    options: dict[str, Any] = {
        key: frozenset({*table.get(key, "").split(), *included.get(key, "").split()} - excluded)
        for key in {*_OPTION_SETS, *_ARITIES}
    }
    arities = {name: arity for key, arity in _ARITIES.items() for name in options[key]}
    return RunnerProgram(
        runner=runner,
        names=tuple(table["names"]),
        mentions=tuple(document["mentions"]),
        example=document["example"],
        commands=table["commands"],
        style=table.get("style", included.get("style", "posix")),
        arities=arities,
        **{key: options[key] for key in _OPTION_SETS},
        **{key: table[key] for key in _OTHER_KEYS if key in table},
    )
