from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from pydantic_ai import Agent

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.cassette.store import build_cassette_path
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run import aitest_run, run_adapter
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.integration.engine.rig import model_of
from tests.model_server import ModelServer
from tests.model_server.script import call

SECRET = "hunter2-hunter2-hunter2"
REDACTOR = Redactor.from_environ({"BANK_TOKEN": SECRET})
SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]
NOBODY = "openai-chat:gpt-5-mini"
"""A model that is asked nowhere, because a cassette answers."""


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


async def run(cassette_session, model, text="my balance?"):
    agent = Agent(model, instructions="Be brief.", tools=[balance], defer_model_check=True)
    options = {"clock": lambda: 0.0, "cassette_session": cassette_session}
    return await run_adapter(agent, text, **options)


def ask(folder, mode, model, text="my balance?", *, iteration=1, scenario="banking"):
    store = CassetteStore(mode, REDACTOR)
    with store.episode("e", folder, scenario, iteration) as cassette_session:
        return asyncio.run(run(cassette_session, model, text))


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
        yield running


@pytest.fixture
def recorded_folder(tmp_path, server):
    """A folder with one take of the scenario."""
    ask(tmp_path, "record", model_of(server))
    return tmp_path


def test_recording_again_writes_the_same_bytes(recorded_folder, server):
    path = build_cassette_path(recorded_folder, "banking")
    first = path.read_bytes()
    ask(recorded_folder, "record", model_of(server))
    assert path.read_bytes() == first


def test_a_cassette_of_an_old_version_is_refused_until_it_is_recorded_again(
    recorded_folder, server
):
    path = build_cassette_path(recorded_folder, "banking")
    path.write_text("cassette: 1\nscenario: banking\ntakes: []\n")
    said = (
        "has version 1, and this program reads only version 3; record it again with "
        "--cassette=record"
    )
    for mode in ("replay", "auto"):
        with pytest.raises(InputError, match=f"^cassette .* {said}$"):
            ask(recorded_folder, mode, NOBODY)
    ask(recorded_folder, "record", model_of(server))
    assert ask(recorded_folder, "replay", NOBODY).cassette == CassetteCounts(hits=2)


def test_a_miss_in_replay_says_what_changed_and_asks_nobody(recorded_folder):
    missed = ask(recorded_folder, "replay", NOBODY, "my savings?")
    assert (missed.stop_reason, missed.outcome) == ("model_error", "error")
    assert "changed: messages[1].content" in missed.error
    assert "-my balance?\n+my savings?" in missed.error
    assert "--cassette=record" in missed.error


def test_a_scenario_without_a_cassette_is_a_miss(tmp_path):
    assert "does not exist or is empty" in ask(tmp_path, "replay", NOBODY).error


def test_a_question_asked_more_often_than_recorded_is_a_miss(recorded_folder):
    store = CassetteStore("replay", REDACTOR)
    with store.episode("e", recorded_folder, "banking") as cassette_session:
        first, second = (asyncio.run(run(cassette_session, NOBODY)) for _ in range(2))
    assert first.success
    assert "asked more often than it was recorded" in second.error
    assert second.cassette == CassetteCounts(hits=2, misses=1)


def test_auto_replays_what_it_has_and_records_the_rest(recorded_folder, server):
    asked = len(server.requests)
    assert ask(recorded_folder, "auto", model_of(server)).cassette == CassetteCounts(hits=2)
    assert len(server.requests) == asked
    other = ask(recorded_folder, "auto", model_of(server), "my savings?")
    assert other.cassette == CassetteCounts(misses=2, live=2)
    for text in ("my savings?", "my balance?"):
        assert ask(recorded_folder, "replay", NOBODY, text).cassette == CassetteCounts(hits=2)


def test_each_iteration_has_its_own_take(tmp_path):
    for number in (1, 2):
        with ModelServer([f"answer {number}"]) as server:
            ask(tmp_path, "record", model_of(server), iteration=number)
    replayed = [ask(tmp_path, "replay", NOBODY, iteration=number) for number in (2, 1)]
    assert [result.final_response for result in replayed] == ["answer 2", "answer 1"]
    missed = ask(tmp_path, "replay", NOBODY, iteration=3)
    assert "it holds iterations 1, 2, not 3" in missed.error


def test_a_single_take_serves_every_iteration_in_replay_only(recorded_folder, server):
    replayed = ask(recorded_folder, "replay", NOBODY, iteration=7)
    assert replayed.cassette == CassetteCounts(hits=2)
    again = ask(recorded_folder, "auto", model_of(server), iteration=2)
    assert again.cassette == CassetteCounts(misses=2, live=2)


def test_no_secret_is_in_the_file_and_replay_still_hits(tmp_path):
    with ModelServer(["it is " + SECRET]) as server:
        ask(tmp_path, "record", model_of(server), f"use {SECRET}")
    (path,) = tmp_path.iterdir()
    assert SECRET not in path.read_text()
    assert ask(tmp_path, "replay", NOBODY, f"use {SECRET}").final_response == "it is [redacted]"


def test_a_scenario_named_by_a_secret_is_not_written_so(tmp_path, server):
    ask(tmp_path, "record", model_of(server), scenario=f"login {SECRET}")
    (path,) = tmp_path.iterdir()
    assert SECRET not in path.name + path.read_text()


def test_a_recording_that_failed_does_not_replace_a_whole_one(recorded_folder):
    path = build_cassette_path(recorded_folder, "banking")
    before = path.read_bytes()
    with ModelServer([SCRIPT[0], 401]) as broken:
        assert "401" in ask(recorded_folder, "record", model_of(broken)).error
    assert path.read_bytes() == before


def test_an_interrupted_recording_is_not_written(tmp_path, server):
    async def interrupted():
        with CassetteStore("record", REDACTOR).episode(
            "e", tmp_path, "banking"
        ) as cassette_session:
            await run(cassette_session, model_of(server))
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert list(tmp_path.iterdir()) == []


def test_different_scenarios_have_different_files(tmp_path):
    names = ["refund", "Refund", "re/fund", "re_fund", "../refund", "", "ü", ".y"]
    names += ["x" * 300, "x" * 301]
    paths = {build_cassette_path(tmp_path, name) for name in names}
    assert len({path.name.lower() for path in paths}) == len(names)
    assert {path.parent for path in paths} == {tmp_path}


WORKER = """
import sys
from pathlib import Path
from ci_agent_eval.engine.cassette.document import RecordedExchange, ToolRequest
from ci_agent_eval.engine.cassette.store import store_take

for number in range(int(sys.argv[2]), 40, 2):
    exchange = RecordedExchange(ToolRequest("balance", {}), {"result": 1500})
    store_take(Path(sys.argv[1]), "s", number, (exchange,))
"""


def test_workers_do_not_lose_each_others_takes(tmp_path):
    from ci_agent_eval.engine.cassette.store import load_cassette

    path = tmp_path / "cassettes" / "s.yaml"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), str(n)]) for n in range(2)
    ]
    assert [worker.wait(600) for worker in workers] == [0] * 2
    assert list(load_cassette(path, "s").takes) == list(range(40))
    assert [p.name for p in path.parent.iterdir()] == ["s.yaml"]


def engine_run(folder, mode, server, clock=None, **settings):
    async def once():
        store = CassetteStore(mode, REDACTOR)
        async with rig.session(balance, clock=clock, cassettes=store, cassette_mode=mode) as opened:
            with store.episode("e1", folder, "banking"):
                given = rig.agent(server, **settings)
                return await aitest_run(given, "hello", session=opened, episode_id="e1")

    return asyncio.run(once())


def test_a_request_that_does_not_fit_the_model_is_replayed(tmp_path):
    too_long = {"status": 400, "code": "context_length_exceeded"}
    with ModelServer([SCRIPT[0], too_long]) as server:
        live = engine_run(tmp_path, "record", server)
        asked = len(server.requests)
        again = engine_run(tmp_path, "replay", server)
        assert len(server.requests) == asked
    assert (live.stop_reason, live.outcome) == ("context_window", "failed")
    ends = [(one.stop_reason, one.outcome, one.error) for one in (live, again)]
    assert ends[0] == ends[1]
    assert (live.cassette, again.cassette) == (CassetteCounts(live=2), CassetteCounts(hits=2))


def test_calls_with_equal_ids_and_odd_arguments_are_replayed(tmp_path):
    odd = {"account": "\N{NEXT LINE}a\n", "n": 2**70, "f": 1.0, "deep": {"a": {}}}
    steps = [
        [{"name": "balance", "arguments": "", "id": "same"}, call("balance", **odd)],
        [{"name": "balance", "arguments": " {} ", "id": "same"}],
        [{"name": "nowhere", "arguments": '{"a": 1, "a": 2}', "id": "same"}],
    ]
    with ModelServer([*({"text": "I look.", "tool_calls": s} for s in steps), "noon"]) as server:
        live = engine_run(tmp_path, "record", server, retries=9)
        again = engine_run(tmp_path, "replay", server, retries=9)
        assert len(server.requests) == live.cassette.live == again.cassette.hits == 4
    assert [turn.tool_calls for turn in again.turns] == [turn.tool_calls for turn in live.turns]
    assert (again.final_response, again.cassette.misses) == ("noon", 0)


@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_a_recorded_answer_does_not_count_in_the_rate_limits(tmp_path, server, mode):
    clock = rig.Clock()
    engine_run(tmp_path, "record", server, clock, rpm=1, tpm=1000)
    assert clock.slept
    clock.slept.clear()
    assert engine_run(tmp_path, mode, server, clock, rpm=1, tpm=1000).success
    assert clock.slept == []
