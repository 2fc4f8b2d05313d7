"""What files of episodes are read as, text by text: every layout, and every problem by its place."""

from __future__ import annotations

import io
import json

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.results import episodes as module
from ci_agent_eval.results.episodes import ParsedEpisode, read_episodes
from tests.builders import episode, failing, journal_line

# As it stands in the overhaul plan (seed document 000)
SEED = {
    "scenario_id": "refund_flow_v1",
    "thread_id": "t-1",
    "assertions": [{"name": "polite", "passed": True}],
    "scores": [{"name": "tone", "value": 0.8}],
    "budgets": {
        "max_turns": 5,
        "tool_calls": {"used": 3, "limit": 4},
        "latency_ms": {"p95": 1200, "limit": 2000},
    },
    "trajectory_summary": {"steps_count": 4, "tool_calls_count": 3},
}


def canonical(*names):
    return "".join(render_results("suite", [canonical_json(episode(name)) for name in names]))


BOTH, THREE = canonical("a", "b"), canonical("a", "b", "c")
NEGATIVE = {"scenario_id": "b", "budgets": {"tool_calls": {"limit": -1}}}
LINES = [journal_line(episode(name)) for name in "ab"]
LONG = json.dumps({"scenario_id": "long", "reason": "x" * 9000})
TEXTS = {
    # what it is: (text, file)
    "canonical": (BOTH, "results.json"),
    "pretty": (json.dumps(json.loads(BOTH), indent=2), "results.json"),
    "with a byte order mark": ("\ufeff" + json.dumps(json.loads(BOTH)), "results.json"),
    "a list": ('[{"scenario_id": "a"}, {"scenario_id": "b"}]', "list.json"),
    "JSON lines": ('{"scenario_id": "a"}\n\n{"scenario_id": "b"}\n', "bare.jsonl"),
    "no last line end": ('{"scenario_id": "a"}\n{"scenario_id": "b"}', "bare.ndjson"),
    "a journal": (journal_line(episode("a"), "started") + "".join(LINES), "gw0.jsonl"),
    "the example of the plan": (json.dumps(SEED, indent=1), "episode.json"),
    "a bad line": (f'{{"scenario_id": "a"}}\n{json.dumps(NEGATIVE)}\n{{"scenario_id": "c"}}', "x.jsonl"),
    "a bad line of results": (THREE.replace('"scenario_id":"b"', '"scenario_idd":"b"'), "results.json"),
    "a bad episode of a document": (
        '{"episodes": [{"scenario_id": "a"}, {"scenario_id": "b", "outcome": "fine"}]}', "results.json",
    ),
    **{
        f"a duration of {word}": (f'{{"scenario_id": "a", "duration_ms": {word}}}\n', "x.jsonl")
        for word in ("NaN", "Infinity", "-Infinity")
    },
    "a syntax error": ('{\n  "scenario_id": oops\n}', "episode.json"),
    "an outcome twice": ('{"scenario_id": "a", "outcome": "failed", "outcome": "passed"}', "a.json"),
    "a gate twice": (
        '{"scenario_id": "a"}\n{"scenario_id": "b", "gate": "required", "gate": "advisory"}\n', "x.jsonl",
    ),
    "a figure twice": (
        '{"scenario_id": "a", "budgets": {"tool_calls": {"used": 9, "used": 1, "limit": 4}}}', "a.json",
    ),
    "a line that is cut off": (LINES[0] + journal_line(failing("b"))[:-20], "gw0.jsonl"),
    **{
        f"results of which {kept:.0%} are left": (THREE[: int(len(THREE) * kept)], "results.json")
        for kept in (0.3, 0.6, 0.95)
    },
    "results that go on": (canonical("a") + canonical("b"), "results.json"),
    "another version": (BOTH.replace('"schema_version":"1","suite"', '"schema_version":"9","suite"'), "results.json"),
    "nothing": ("", "x.json"),
    "null": ("null", "x.json"),
    "tests of another layout": ('{"tests": []}', "x.json"),
    "episodes that are a number": ('{"episodes": 3}', "x.json"),
    "a list of numbers": ("[1]", "x.json"),
    "too deep": ("[" * 100_000, "x.json"),
    "an overlong line": (f'{{"scenario_id": "a"}}\n{LONG}\n{{"scenario_id": "c"}}\n', "x.jsonl"),
    "a large document of another layout": ("[" + '{"scenario_id": "a"},' * 200 + "]", "x.json"),
}  # fmt: skip


def describe(what, text, name):
    lines = [f"{what} in {name}"]
    for item in read_episodes(io.BytesIO(text.encode()), name):
        if isinstance(item, ParsedEpisode):
            lines.append(f"  {item.event} {item.episode.scenario_id}: {item.episode.outcome}")
        else:
            lines.append(f"  line {item.line}{', cut' if item.cut else ''}: {item.message}")
    return "\n".join(lines)


def test_the_texts_are_read_as_the_golden_one_says(golden, monkeypatch):
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 4000)
    text = "\n".join(describe(what, *one) for what, one in TEXTS.items())
    golden("results/episodes.txt", f"{text}\n")
