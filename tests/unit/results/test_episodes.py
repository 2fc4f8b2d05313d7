from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.results.episodes import ParsedEpisode, read_episodes
from ci_agent_eval.results.json_text import ReadProblem
from ci_agent_eval.results.load import load_results
from tests.builders import episode, journal_line
from tests.tables import each_row


def read(text: str | bytes, name: str = "results.json") -> list[ParsedEpisode | ReadProblem]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_episodes(io.BytesIO(data), name))


def canonical(*names: str) -> str:
    return "".join(render_results("suite", [canonical_json(episode(name)) for name in names]))


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
