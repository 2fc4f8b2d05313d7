"""Files of each tool as they are read; tests/fixtures/interchange/README.md says of which version."""

from __future__ import annotations

import io
import json
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.results.episodes import ParsedEpisode, read_episodes
from ci_agent_eval.results.json_text import ReadProblem

FILES = Path(__file__).parents[3] / "fixtures/interchange"
EXAMPLES = {
    "promptfoo": "promptfoo/once.json",
    "inspect-ai": "inspect_ai/once.json",
    "deepeval": "deepeval/single.json",
    "pydantic-evals": "pydantic_evals/once.json",
    "ctrf": "ctrf/jest.json",
}


def read_document(document):
    return list(read_episodes(io.BytesIO(json.dumps(document).encode()), "any.json"))


def problems(document):
    return [item for item in read_document(document) if isinstance(item, ReadProblem)]


def loaded(name):
    """A file's document; of JSON lines the list of records."""
    text = (FILES / name).read_text()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def describe(item):
    """What was read, as JSON holds it, with the figures that are made of it."""
    if isinstance(item, ReadProblem):
        return {"problem": item._asdict()}
    if not isinstance(item, ParsedEpisode):
        return {"case": item._asdict()}
    record = build_episode_record(item.episode)
    figures = {"tokens": record.tokens, "cost_usd": record.cost_usd}
    figures |= {"latencies_ms": record.latencies_ms, "steps": len(record.tools)}
    return {"episode": json.loads(canonical_json(item.episode)), "figures": figures}
