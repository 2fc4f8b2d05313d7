"""Files of each tool as they are read; they are made by tests/fixtures/interchange/make_*."""

from __future__ import annotations

import io
import json
from pathlib import Path

from ci_agent_eval.results.episodes import ReadProblem, read_episodes

FILES = Path(__file__).parents[3] / "fixtures/interchange"


def read(name):
    found = read_document(json.loads((FILES / name).read_text()))
    assert not any(isinstance(item, ReadProblem) for item in found)
    return {(e.scenario_id, e.agent, e.iteration): e for e in (r.episode for r in found)}


def read_document(document):
    return list(read_episodes(io.BytesIO(json.dumps(document).encode()), "any.json"))


def outcomes(episodes):
    return {key[0]: episode.outcome for key, episode in episodes.items()}


def problems(document):
    return [item for item in read_document(document) if isinstance(item, ReadProblem)]


def loaded(name):
    return json.loads((FILES / name).read_text())
