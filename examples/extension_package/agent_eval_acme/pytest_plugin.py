"""A column, and a copy of each episode in a file for Acme."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ci_agent_eval import Episode


@pytest.hookimpl(optionalhook=True)
def pytest_agent_eval_columns(episode: Episode) -> dict[str, int]:
    turns = episode.trajectory.agent_turns if episode.trajectory else ()
    return {"words": sum(len(turn.content.split()) for turn in turns)}


@pytest.hookimpl(optionalhook=True)
def pytest_agent_eval_episode(episode: Episode) -> None:
    path = os.environ.get("ACME_EPISODES")
    if path:
        line = {"scenario": episode.scenario_id, "outcome": episode.outcome, **episode.columns}
        # One small write in append mode: workers of pytest-xdist share the file.
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
