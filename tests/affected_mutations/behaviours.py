"""The behaviour of each scenario: what its conversations contain, without times."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Behaviours = Mapping[str, str | None]
"""Of each scenario; None if it did not pass."""

_TURN = ("role", "content", "source", "finish_reason")
_CALL = ("name", "arguments", "result", "error")


def load_behaviours(report: Path) -> Behaviours:
    """Read the stored episodes of a run; a run that stored none has no behaviours."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(report.glob("episodes/*.jsonl")):
        events = map(json.loads, file.read_text("utf-8").splitlines())
        for event in events:
            episode = event["episode"]
            if event["event"] == "ended":
                found[episode["scenario_id"]].append(episode)
            else:
                found[episode["scenario_id"]] += []
    return {scenario: _describe_episodes(episodes) for scenario, episodes in found.items()}


def find_changed(base: Behaviours, *runs: Behaviours) -> frozenset[str]:
    """Return the scenarios that are new, did not pass, or behaved in another way in any run."""
    return frozenset(
        scenario
        for run in runs
        for scenario in base.keys() | run.keys()
        if run.get(scenario) is None or run[scenario] != base.get(scenario)
    )


def _describe_episodes(episodes: list[dict[str, Any]]) -> str | None:
    if not episodes or any(episode["outcome"] != "passed" for episode in episodes):
        return None
    described = [_describe_episode(episode) for episode in episodes]
    return json.dumps(described, sort_keys=True)


def _describe_episode(episode: dict[str, Any]) -> list[Any]:
    turns = episode.get("trajectory", {}).get("turns", [])
    assertions = [(item["name"], item["passed"]) for item in episode.get("assertions", [])]
    return [
        [_pick(turn, _TURN) | {"calls": _describe_calls(turn)} for turn in turns],
        assertions,
    ]


def _describe_calls(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [_pick(call, _CALL) for call in turn.get("tool_calls", [])]


def _pick(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}
