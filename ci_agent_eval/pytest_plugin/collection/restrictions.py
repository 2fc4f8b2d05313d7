"""What the command line leaves out on purpose: `-k`, `-m`, node ids, paths, `--lf` and others.

What pytest's ini file and the settings of the suite leave out defines the suite. It is no
restriction of this one run, so that a scenario that it takes away is missing.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.episodes.places import Places

_RESTRICTING = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "lf": "--lf",
    "stepwise": "--stepwise",
}
"""pytest's options that leave tests out, by where its parser puts them."""


def asked_arguments(config: pytest.Config) -> list[str]:
    """Return the arguments of this one run; those of a plain `pytest` and `PYTEST_ADDOPTS`."""
    given = config.option.episode_asked
    own = json.loads(given) if given else [str(each) for each in config.invocation_params.args]
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *own]


def parse_asked(config: pytest.Config) -> Any:
    """Return the arguments of this one run as pytest's own parser reads them, without defaults."""
    return config.stash[options.PARSER].parse_known_args(asked_arguments(config))


def restrictions(asked: Any) -> Iterator[str]:
    """Yield the arguments that leave tests out, as they may be written on a command line."""
    for name, option in _RESTRICTING.items():
        value = getattr(asked, name, None)
        for each in value if isinstance(value, list) else [value]:
            if each:
                yield option if each is True else f"{option} {shlex.quote(str(each))}"
    yield from (path for path in asked.file_or_dir if "::" in path)


def paths(asked: Any, config: pytest.Config, places: Places) -> Sequence[str]:
    """Return the files and folders that were named, relative to the repository root."""
    named = [path for path in asked.file_or_dir if "::" not in path]
    found = (places.relative(os.path.normpath(config.invocation_params.dir / p)) for p in named)
    return [path or given for path, given in zip(found, named, strict=True)]
