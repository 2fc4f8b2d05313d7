"""The selection of items: by `--episode-scenario`, `--shard`, and for another run of scenarios."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.results import Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import (
    get_iteration,
    get_scenario_unit,
    is_optional,
)
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.collection.shared_conversations import find_session_name
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.storage.sharding import assign_shards, hash_shard_plan, parse_shard

_MAX_BYTES = 256 * 1024 * 1024


def select_shard_items(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Keep the items of this shard, in their order; return the others.

    All iterations of a scenario stay together, and all tests of a session. Every shard must see
    the same items.
    """
    index, count = _parse_shard_option(config)
    units = [find_session_name(item) or get_scenario_unit(item) for item in items]
    sure = [unit for unit, item in zip(units, items, strict=True) if not is_optional(item)]
    assigned = assign_shards(sure, count, _load_given_durations(config))
    kept = [item for item, unit in zip(items, units, strict=True) if assigned[unit] == index]
    others = [item for item, unit in zip(items, units, strict=True) if assigned[unit] != index]
    get_parts(config).shard = get_requested_shard(config, os.environ).model_copy(
        update={"plan": hash_shard_plan(assigned), "empty": not kept}
    )
    items[:] = kept
    return others


def get_requested_shard(config: pytest.Config, environ: Mapping[str, str]) -> Shard:
    """Return the requested shard, with the workflow run and its attempt."""
    index, count = _parse_shard_option(config)
    return Shard(
        index=index,
        count=count,
        run=environ.get("GITHUB_RUN_ID") or None,
        attempt=get_workflow_attempt(environ),
    )


def get_workflow_attempt(environ: Mapping[str, str]) -> int:
    """Return the attempt number of the workflow run; 1 outside of a workflow."""
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    return int(attempt) if attempt.isdecimal() else 1


def _parse_shard_option(config: pytest.Config) -> tuple[int, int]:
    try:
        return parse_shard(str(config.option.shard))
    except InputError as error:
        raise pytest.UsageError(f"--shard: {error}") from None


def _load_given_durations(config: pytest.Config) -> Mapping[str, float]:
    """Return milliseconds by scenario from the results of an earlier run."""
    option = config.option.shard_durations
    if not option:
        return {}
    path = config.invocation_params.dir / str(option)
    try:
        return _load_durations(path / "results.json" if path.is_dir() else path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a results.json"
        raise pytest.UsageError(
            f"--shard-durations: {option}: {reason}; name the report folder of an earlier run"
        ) from None


def _load_durations(path: Path) -> Mapping[str, float]:
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError("too large")
    totals: dict[str, float] = defaultdict(float)
    for episode in _get_episodes(json.loads(path.read_bytes())):
        totals[str(episode["scenario_id"])] += float(episode.get("duration_ms") or 0.0)
    return totals


def _get_episodes(document: Any) -> Iterable[Mapping[str, Any]]:
    episodes: Iterable[Mapping[str, Any]] = document["episodes"]
    return episodes


def select_scenarios(items: list[pytest.Item], wanted: Sequence[str]) -> list[pytest.Item]:
    """Keep the episodes of the scenarios; return the other items.

    Raises pytest.UsageError for a scenario that no collected test has. Tests that name their
    scenario at run time are known by their node ids.
    """
    found = {id(item): _get_scenario(item) for item in items}
    for scenario in wanted:
        if scenario not in found.values():
            raise pytest.UsageError(
                f"--episode-scenario: no collected test has the scenario {scenario!r}; "
                f"{_suggest_scenario(scenario, filter(None, found.values()))}"
            )
    others = [item for item in items if found[id(item)] not in wanted]
    items[:] = [item for item in items if found[id(item)] in wanted]
    return others


def _suggest_scenario(wanted: str, known: Iterable[str]) -> str:
    """Return a hint with the scenario of the nearest id, or of the nearest test name."""
    ids = {name: one for one in sorted(known) for name in (one.rpartition("::")[2], one)}
    nearest = get_close_matches(wanted, ids, n=1)
    if nearest:
        return f"did you mean {ids[nearest[0]]!r}?"
    return "its id is in the report, and pytest --collect-only lists the tests"


def _get_scenario(item: pytest.Item) -> str | None:
    return build_collected_episode(item).scenario_id if detection.is_episode(item) else None


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
