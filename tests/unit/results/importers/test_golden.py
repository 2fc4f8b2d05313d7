"""All that a file of each tool comes to: episodes, cases and figures, as a reviewer reads them."""

from __future__ import annotations

import json

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.results.episodes import ParsedEpisode
from ci_agent_eval.results.json_text import ReadProblem
from tests.tables import each_row
from tests.unit.results.importers.reading import FILES, loaded, read_document

NAMES = sorted(path.relative_to(FILES).as_posix() for path in FILES.glob("*/*.json*"))


def describe(item):
    if isinstance(item, ReadProblem):
        return {"problem": item._asdict()}
    if not isinstance(item, ParsedEpisode):
        return {"case": item._asdict()}
    record = build_episode_record(item.episode)
    figures = {"tokens": record.tokens, "cost_usd": record.cost_usd}
    figures |= {"latencies_ms": record.latencies_ms, "steps": len(record.steps)}
    return {"episode": json.loads(canonical_json(item.episode)), "figures": figures}


@each_row("name", NAMES)
def test_a_file_comes_to_the_golden_episodes(name, golden):
    found = [describe(item) for item in read_document(loaded(name))]
    text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    golden(f"importers/{name.replace('/', '-').partition('.')[0]}.json", f"{text}\n")
