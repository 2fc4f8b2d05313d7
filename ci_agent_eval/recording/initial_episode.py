"""The initial episode: the fields of the marker and of the test, before the first turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Episode, Gating, Mode
from ci_agent_eval.contract.evidence import Evidence
from ci_agent_eval.contract.faults import Fault, check_declared_fault
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.recording.validation import build_value


class EpisodeFields(TypedDict, total=False):
    """Fields of an episode that are known before it starts."""

    was: tuple[str, ...]
    thread_id: str | None
    nodeid: str | None
    file: str | None
    line: int | None
    case: str | None
    iteration: int
    iterations: int
    minimum_iterations: int | None
    attempt: int
    mode: Mode
    gate: Gating
    evidence: Evidence | None
    min_pass_rate: float | None
    min_passes: int | None
    allowed_stops: Collection[str]
    faults: Sequence[Fault | Mapping[str, Any]]
    agent: str | None
    model: str | None
    budgets: Budgets | Mapping[str, Any]
    metadata: Mapping[str, Any]


def build_initial_episode(scenario_id: str, **fields: Unpack[EpisodeFields]) -> Episode:
    """Build an episode without turns. Raises InputError, which names the key."""
    known = {key: value for key, value in fields.items() if value is not None}
    if isinstance(known.get("metadata"), Mapping):
        known["metadata"] = to_jsonable(known["metadata"])
    episode = build_value("episode", Episode, scenario_id=scenario_id, **known)
    for number, fault in enumerate(episode.faults):
        build_value(f"episode: faults.{number}", check_declared_fault, fault=fault)
    return episode
