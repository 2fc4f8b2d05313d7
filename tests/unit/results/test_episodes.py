from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.results import episodes as module
from ci_agent_eval.results.episodes import ParsedEpisode, read_episodes
from ci_agent_eval.results.json_text import ReadProblem
from ci_agent_eval.results.load import load_results
from tests.builders import episode, failing, journal_line
from tests.tables import each_row

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


def read(text: str | bytes, name: str = "results.json") -> list[ParsedEpisode | ReadProblem]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_episodes(io.BytesIO(data), name))


def scenarios(found: list[ParsedEpisode | ReadProblem]) -> list[str]:
    return [item.episode.scenario_id for item in found if isinstance(item, ParsedEpisode)]


def problems(found: list[ParsedEpisode | ReadProblem]) -> list[ReadProblem]:
    return [item for item in found if isinstance(item, ReadProblem)]


def canonical(*names: str) -> str:
    return "".join(render_results("suite", [canonical_json(episode(name)) for name in names]))


@each_row(
    ("text", "name"),
    [
        (canonical("a", "b"), "results.json"),
        (json.dumps(json.loads(canonical("a", "b")), indent=2), "results.json"),
        ("\ufeff" + json.dumps(json.loads(canonical("a", "b"))), "results.json"),
        ('[{"scenario_id": "a"}, {"scenario_id": "b"}]', "list.json"),
        ('{"scenario_id": "a"}\n\n{"scenario_id": "b"}\n', "bare.jsonl"),
        ('{"scenario_id": "a"}\n{"scenario_id": "b"}', "bare.ndjson"),
        (journal_line(episode("a")) + journal_line(episode("b")), "gw0.jsonl"),
    ],
    ids=["canonical", "pretty", "bom", "list", "jsonl", "no-newline", "journal"],
)
def test_every_layout_gives_the_same_episodes(text: str, name: str) -> None:
    found = read(text, name)
    assert (scenarios(found), problems(found)) == (["a", "b"], [])


def test_the_literal_example_of_the_first_seed_is_an_episode() -> None:
    (record,) = read(json.dumps(SEED, indent=1), "episode.json")
    assert isinstance(record, ParsedEpisode)
    assert [violation.budget for violation in record.episode.violations] == []


def test_a_journal_tells_started_from_ended() -> None:
    found = read(journal_line(episode(), "started") + journal_line(episode()), "gw0.jsonl")
    assert [item.event for item in found if isinstance(item, ParsedEpisode)] == ["started", "ended"]


def test_a_bad_line_is_named_and_the_rest_is_read() -> None:
    bad = {"scenario_id": "b", "budgets": {"tool_calls": {"limit": -1}}}
    lines = [json.dumps({"scenario_id": "a"}), json.dumps(bad), json.dumps({"scenario_id": "c"})]
    found = read("\n".join(lines), "x.jsonl")
    assert scenarios(found) == ["a", "c"]
    (problem,) = problems(found)
    assert problem.line == 2
    assert problem.message.startswith(
        "budgets.tool_calls.limit: Input should be greater than or equal to 0"
    )


def test_a_bad_line_of_results_is_named_and_the_rest_is_read() -> None:
    text = canonical("a", "b", "c").replace('"scenario_id":"b"', '"scenario_idd":"b"')
    found = read(text)
    assert scenarios(found) == ["a", "c"]
    assert [problem.line for problem in problems(found)] == [3]
    assert "scenario_id" in problems(found)[0].message


def test_a_bad_episode_of_a_document_is_named_by_its_place() -> None:
    found = read('{"episodes": [{"scenario_id": "a"}, {"scenario_id": "b", "outcome": "fine"}]}')
    assert scenarios(found) == ["a"]
    assert problems(found)[0].message.startswith("episodes[1].outcome: Input should be 'passed'")


@each_row("key", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(key: str) -> None:
    found = read(f'{{"scenario_id": "a", "duration_ms": {key}}}\n', "x.jsonl")
    assert "duration_ms" in problems(found)[0].message


def test_a_syntax_error_names_line_and_column() -> None:
    (problem,) = problems(read('{\n  "scenario_id": oops\n}', "episode.json"))
    assert (problem.line, problem.message) == (2, "it is not JSON: expected value at column 18")


@each_row(
    ("text", "name", "line"),
    [
        ('{"scenario_id": "a", "outcome": "failed", "outcome": "passed"}', "a.json", 1),
        ('{"scenario_id": "a"}\n{"scenario_id": "b", "gate": "required", "gate": "advisory"}\n', "x.jsonl", 2),
        ('{"scenario_id": "a", "budgets": {"tool_calls": {"used": 9, "used": 1, "limit": 4}}}', "a.json", 1),
    ],
)  # fmt: skip
def test_a_duplicate_key_is_refused(text: str, name: str, line: int) -> None:
    (problem,) = problems(read(text, name))
    assert problem.line == line
    assert problem.message.startswith('it has the duplicate key "')


def test_a_cut_last_line_is_told_apart() -> None:
    text = journal_line(episode("a")) + journal_line(failing("b"))[:-20]
    found = read(text, "gw0.jsonl")
    assert scenarios(found) == ["a"]
    assert problems(found) == [ReadProblem("its last line is cut off", 2, cut=True)]


@each_row("kept", [0.3, 0.6, 0.95])
def test_results_that_are_cut_off_say_so_once(kept: float) -> None:
    text = canonical("a", "b", "c")
    found = read(text[: int(len(text) * kept)])
    assert [problem.message for problem in problems(found)] == [
        "it is cut off before its list of episodes ends"
    ]


def test_results_that_go_on_after_their_end_are_a_problem() -> None:
    found = read(canonical("a") + canonical("b"))
    assert (scenarios(found), problems(found)) == (
        ["a"],
        [ReadProblem("it goes on after its end", 4)],
    )


def test_another_schema_version_is_refused() -> None:
    found = read(
        canonical("a").replace('"schema_version":"1","suite"', '"schema_version":"9","suite"')
    )
    assert scenarios(found) == []
    assert "schema_version" in problems(found)[0].message


@each_row(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("null", "it holds no episodes"),
        ('{"tests": []}', "CTRF reporters write; read other formats with --mapping"),
        ('{"episodes": 3}', "it holds no episodes"),
        ("[1]", "[0]."),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_documents_without_episodes_are_named(text: str, problem: str) -> None:
    found = read(text, "x.json")
    assert scenarios(found) == []
    assert problem in problems(found)[0].message


def test_an_overlong_line_is_named_and_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 2000)
    long = json.dumps({"scenario_id": "long", "reason": "x" * 9000})
    text = f'{{"scenario_id": "a"}}\n{long}\n{{"scenario_id": "c"}}\n'
    found = read(text, "x.jsonl")
    assert scenarios(found) == ["a", "c"]
    assert [problem.line for problem in problems(found)] == [2]


def test_a_large_document_of_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    found = read("[" + '{"scenario_id": "a"},' * 20 + "]", "x.json")
    assert "one episode a line" in problems(found)[0].message


pieces = st.sampled_from(
    [canonical("a"), canonical("b")[:-3], journal_line(episode()), "[", "]}", "\n", "{}", "NaN",
     '{"event": 1, "episode": {}}', '{"episodes": {}}', '{"scenario_id": 3}', "\x00", "🦆"]
)  # fmt: skip


@given(
    st.one_of(st.binary(max_size=200), st.lists(pieces).map(lambda p: "".join(p).encode())),
    st.sampled_from(["x.json", "x.jsonl"]),
)
def test_no_bytes_raise(data: bytes, name: str) -> None:
    assert all(isinstance(item, ParsedEpisode | ReadProblem) for item in read(data, name))


@each_row("indent", [None, 2])
def test_results_of_a_run_that_did_not_finish_say_so_themselves(tmp_path, indent):
    pieces = render_results("default", [canonical_json(episode())], complete=False)
    text = "".join(pieces)
    path = tmp_path / "results.json"
    path.write_text(text if indent is None else json.dumps(json.loads(text), indent=indent))
    loaded = load_results(["results.json"], [], root=tmp_path)
    assert [f.kind for f in loaded.findings if f.blocking][:1] == ["unreadable_file"]
    assert "says that it is not complete" in loaded.findings[0].message
