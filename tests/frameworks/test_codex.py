"""The row of Codex, a coding agent in a folder of each episode, through the gateway."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.engine import CassetteStore, RunLimits
from ci_agent_eval.engine.cassette.misses import parse_rules
from ci_agent_eval.redaction import Redactor
from tests.frameworks.running import ask, run
from tests.frameworks.scripts import BALANCE, USAGE
from tests.model_server.script import Step, call

SCHEMA = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "dollars": {"type": "number"}},
    "required": ["account", "dollars"],
    "additionalProperties": False,
}


@pytest.fixture
def folder(tmp_path):
    """The folder of an episode."""
    return create_folder(tmp_path / "work")


def create_folder(folder):
    folder.mkdir()
    (folder / "note.txt").write_text("checking: $1,500.00")
    return folder


def read_file(name="note.txt"):
    return Step(tool_calls=[call("exec_command", cmd=f"cat {name}")])


def test_an_answer_after_a_tool_call(row, agents, scripts, folder):
    prompt = scripts.add(read_file(), Step(text="$1,500.00."))
    result = run(ask(agents.declare(folder), prompt))
    assert result.final_response == "$1,500.00.", result.error
    served = scripts.count_requests(prompt)
    turns = result.trajectory.agent_turns
    row.record("requests", is_reached=len(turns) == served == 2, details=served)
    said = [turn.content for turn in turns]
    row.record("turns", is_reached=said == ["", "$1,500.00."], details=result.turns)
    (made,) = turns[0].tool_calls
    got = (made.name, made.arguments)
    expected = ("exec_command", {"cmd": "cat note.txt"})
    row.record("tool_calls", is_reached=got == expected, details=got)
    row.record("tool_results", is_reached="checking: $1,500.00" in made.result, details=made)
    usage = result.token_usage
    tokens = (usage.input, usage.output, usage.cached)
    expected_tokens = tuple(2 * USAGE[name] for name in ("input", "output", "cached"))
    row.record("tokens", is_reached=tokens == expected_tokens, details=tokens)
    row.record("cost", is_reached=result.cost_usd is not None)
    row.record("finish", is_reached=all(turn.finish_reason for turn in turns))
    streamed = [asked.body["stream"] for asked in scripts.server.requests[-2:]]
    row.record("streaming", is_reached=streamed == [True, True])
    row.record("glue", is_reached=True)
    row.cells["glue"] = "5"
    row.record("handoffs", is_reached=False)
    row.record("suite_replay", is_reached=False)
    row.record("conversation", is_reached=False)


def test_a_tool_that_fails(row, agents, scripts, folder):
    prompt = scripts.add(read_file("missing.txt"), Step(text="I could not."))
    result = run(ask(agents.declare(folder), prompt))
    text = str(result.turns[1].tool_calls[0].result)
    row.record("tool_errors", is_reached="No such file" in text, details=text)


def test_a_typed_output(row, agents, scripts, folder):
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    prompt = scripts.add(Step(text=json.dumps(BALANCE)))
    result = run(ask(agents.declare(folder, "--output-schema schema.json"), prompt))
    output = result.turns[-1].typed_output
    row.record("typed", is_reached=output == BALANCE, details=(result.error, result.turns))


def test_a_bad_end_keeps_the_turns_before_it(row, agents, scripts, folder):
    prompt = scripts.add(read_file(), *[Step(status=400, code="bad_request")] * 30)
    result = run(ask(agents.declare(folder), prompt))
    kept = result.turns[1].tool_calls[0].name == "exec_command"
    row.record("bad_end", is_reached=kept and not result.success, details=result)


def test_a_budget_stops_it(row, agents, scripts, folder):
    prompt = scripts.add(*[read_file()] * 30)
    result = run(ask(agents.declare(folder), prompt, limits=RunLimits(max_turns=3)))
    served = scripts.count_requests(prompt)
    got = (result.stop_reason, served, len(result.trajectory.agent_turns))
    row.record("budget", is_reached=got == ("max_turns", 3, 3), details=got)


def test_a_replay_equals_its_recording(row, agents, scripts, folder, tmp_path):
    prompt = scripts.add(read_file(), Step(text="$1,500.00."))

    def play(mode):
        store = CassetteStore(mode, Redactor.from_environ({}), parse_rules(agents.REPLACED))
        with store.episode("one", tmp_path, "balance"):
            go = ask(agents.declare(folder), prompt, episode_id="one")
            result = run(go, mode=mode, store=store)
        turns = [(turn.role, turn.content, turn.tokens) for turn in result.turns]
        return result.stop_reason, turns, result.error

    recorded, replayed = play("record"), play("replay")
    served = scripts.count_requests(prompt)
    is_equal = recorded == replayed and recorded[0] == "completed" and served == 2
    row.record("replay", is_reached=is_equal, details=(served, recorded, replayed))


def test_concurrent_episodes_stay_apart(row, agents, scripts, tmp_path):
    prompts = [scripts.add(read_file(), Step(text=f"{n}.")) for n in range(20)]
    results = run(
        *(
            ask(agents.declare(create_folder(tmp_path / str(n))), prompt)
            for n, prompt in enumerate(prompts)
        )
    )
    got = [(result.final_response, len(result.trajectory.agent_turns)) for result in results]
    expected = [(f"{n}.", 2) for n in range(20)]
    row.record("concurrent", is_reached=got == expected, details=got)
