"""`--episode-again`: run some scenarios again, in a checkout of the base or of the head.

Only `agent-eval run --confirm` gives the option, with a file of the scenarios.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_iteration
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.parts import get_parts


class RepeatedScenarios:
    """Selects the scenarios, and keeps the other checkout's code out."""

    def __init__(self, iterations: Mapping[str, int], other: str | None, own: str) -> None:
        self._iterations = iterations
        self._other = other
        self._own = own
        self._seen: set[str] = set()

    @classmethod
    def load(cls, config: pytest.Config) -> RepeatedScenarios:
        """Read the file of the option."""
        document: Any = json.loads(Path(str(config.option.episode_again)).read_text())
        iterations: Mapping[str, int] = document["iterations"]
        own = os.path.realpath(config.invocation_params.dir)
        get_parts(config).forced_iterations = IterationRange(max(iterations.values()))
        return cls(iterations, document["other_checkout"], own)

    def select(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Keep the wanted iterations of the scenarios, and nothing else; return the others."""
        kept = [item for item in items if self._is_wanted(item)]
        wanted = set(map(id, kept))
        others = [item for item in items if id(item) not in wanted]
        items[:] = kept
        return others

    def _is_wanted(self, item: pytest.Item) -> bool:
        if not detection.is_episode(item):
            return False
        scenario = build_collected_episode(item).scenario_id
        return get_iteration(item).number <= self._iterations.get(scenario, 0)

    def refuse(self, item: pytest.Item) -> None:
        """Refuse an episode in a process that has imported code of the other checkout."""
        if (found := self._find_foreign_module()) is not None:
            raise pytest.UsageError(
                f"{item.nodeid}: {found} comes from the other checkout, {self._other}; let the "
                "install commands install this one"
            )

    def _find_foreign_module(self) -> str | None:
        if self._other is None:
            return None
        for name, module in list(sys.modules.items()):
            if name in self._seen or name.partition(".")[0] == "ci_agent_eval":
                continue
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self._is_foreign(os.path.realpath(file)):
                return name
            self._seen.add(name)
        return None

    def _is_foreign(self, file: str) -> bool:
        if "site-packages" in Path(file).parts:
            return False  # an environment below the checkout
        return _is_below(file, str(self._other)) and not _is_below(file, self._own)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
