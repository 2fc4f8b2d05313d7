from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError

from ci_agent_eval.engine.cassette import CassetteMissError, CassetteModel, CassetteStore
from ci_agent_eval.engine.cassette.files import build_cassette_path
from ci_agent_eval.engine.cassette.responses import record_overflow, replay_response
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.integration.engine.rig import model_of
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.tables import each_row

SECRET = "hunter2-hunter2-hunter2"
REDACTOR = Redactor.from_environ({"BANK_TOKEN": SECRET})
SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


def never():
    raise AssertionError("replay builds no model")


def users_agent():
    """An agent as users have it: nothing of ours in it."""
    return Agent(instructions="Be brief.", tools=[balance])


async def run(cassette_session, inner, text, agent):
    async with CassetteModel(inner, cassette_session) as model:
        return (await agent.run(text, model=model)).output


def ask(folder, mode, inner, text="my balance?", *, iteration=1, agent=None):
    store = CassetteStore(mode, REDACTOR)
    with store.episode("e", folder, "banking", iteration) as cassette_session:
        return asyncio.run(
            run(cassette_session, inner, text, agent or users_agent())
        ), cassette_session.counts


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


def test_a_miss_in_replay_says_what_changed_and_asks_nobody(recorded_folder):
    with pytest.raises(CassetteMissError, match="changed: the prompt") as caught:
        ask(recorded_folder, "replay", never, "my savings?")
    assert "-my balance?\n+my savings?" in str(caught.value)
    assert "--cassette=record" in str(caught.value)


def test_a_scenario_without_a_cassette_is_a_miss(tmp_path):
    with pytest.raises(CassetteMissError, match="does not exist or is empty"):
        ask(tmp_path, "replay", never)


def test_a_question_asked_more_often_than_recorded_is_a_miss(recorded_folder):
    store = CassetteStore("replay", REDACTOR)
    with store.episode("e", recorded_folder, "banking") as cassette_session:
        asyncio.run(run(cassette_session, never, "my balance?", users_agent()))
        with pytest.raises(CassetteMissError, match="asked more often than it was recorded"):
            asyncio.run(run(cassette_session, never, "my balance?", users_agent()))
    assert cassette_session.counts == CassetteCounts(hits=2, misses=1)


def test_auto_replays_what_it_has_and_records_the_rest(recorded_folder, server):
    asked = len(server.requests)
    assert ask(recorded_folder, "auto", model_of(server))[1] == CassetteCounts(hits=2)
    assert len(server.requests) == asked
    _, counts = ask(recorded_folder, "auto", model_of(server), "my savings?")
    assert counts == CassetteCounts(misses=2, live=2)
    for text in ("my savings?", "my balance?"):
        assert ask(recorded_folder, "replay", never, text)[1] == CassetteCounts(hits=2)


def test_each_iteration_has_its_own_take(tmp_path):
    for number in (1, 2):
        with ModelServer([f"answer {number}"]) as server:
            ask(tmp_path, "record", model_of(server), iteration=number)
    assert [ask(tmp_path, "replay", never, iteration=n)[0] for n in (2, 1)] == [
        "answer 2",
        "answer 1",
    ]
    with pytest.raises(CassetteMissError, match="it holds iterations 1, 2, not 3"):
        ask(tmp_path, "replay", never, iteration=3)


def test_a_single_take_serves_every_iteration_in_replay_only(recorded_folder, server):
    assert ask(recorded_folder, "replay", never, iteration=7)[1] == CassetteCounts(hits=2)
    assert ask(recorded_folder, "auto", model_of(server), iteration=2)[1] == CassetteCounts(
        misses=2, live=2
    )


def test_no_secret_is_in_the_file_and_replay_still_hits(tmp_path):
    with ModelServer(["it is " + SECRET]) as server:
        ask(tmp_path, "record", model_of(server), f"use {SECRET}")
    (path,) = tmp_path.iterdir()
    assert SECRET not in path.read_text()
    assert ask(tmp_path, "replay", never, f"use {SECRET}")[0] == "it is [redacted]"


def test_a_scenario_named_by_a_secret_is_not_written_so(tmp_path, server):
    with CassetteStore("record", REDACTOR).episode(
        "e", tmp_path, f"login {SECRET}"
    ) as cassette_session:
        asyncio.run(run(cassette_session, model_of(server), "my balance?", users_agent()))
    (path,) = tmp_path.iterdir()
    assert SECRET not in path.name + path.read_text()


def test_a_recording_that_failed_does_not_replace_a_whole_one(recorded_folder):
    path = build_cassette_path(recorded_folder, "banking")
    before = path.read_bytes()
    with ModelServer([SCRIPT[0], 400]) as broken, pytest.raises(Exception, match="400"):
        ask(recorded_folder, "record", model_of(broken))
    assert path.read_bytes() == before


def test_an_interrupted_recording_is_not_written(tmp_path, server):
    async def interrupted():
        with CassetteStore("record", REDACTOR).episode(
            "e", tmp_path, "banking"
        ) as cassette_session:
            await run(cassette_session, model_of(server), "my balance?", users_agent())
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


def test_episodes_at_once_keep_their_takes_apart(tmp_path):
    async def one(store, number, inner):
        with store.episode(f"e{number}", tmp_path, "banking", number) as cassette_session:
            return await run(cassette_session, inner, f"balance {number}?", users_agent())

    async def all_of(mode, make):
        store = CassetteStore(mode, REDACTOR)
        return await asyncio.gather(*(one(store, n, make) for n in range(1, 11)))

    with ModelServer(["{prompt} 7"]) as server:
        said = asyncio.run(all_of("record", lambda: model_of(server)))
    assert said == [f"balance {n}? 7" for n in range(1, 11)]
    assert asyncio.run(all_of("replay", never)) == said


WORKER = """
import sys
from pathlib import Path
from ci_agent_eval.engine.cassette.canonical import CanonicalRequest
from ci_agent_eval.engine.cassette.document import RecordedExchange
from ci_agent_eval.engine.cassette.files import store_take

for number in range(int(sys.argv[2]), 40, 2):
    request = CanonicalRequest({"model": "m"}, [], ({"kind": "request", "parts": []},))
    store_take(Path(sys.argv[1]), "s", number, (RecordedExchange(request, {"parts": []}),))
"""


def test_workers_do_not_lose_each_others_takes(tmp_path):
    from ci_agent_eval.engine.cassette.files import load_cassette

    path = tmp_path / "cassettes" / "s.yaml"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), str(n)]) for n in range(2)
    ]
    assert [worker.wait(600) for worker in workers] == [0] * 2
    assert list(load_cassette(path, "s").takes) == list(range(40))
    assert [p.name for p in path.parent.iterdir()] == ["s.yaml"]


def engine_run(folder, mode, server):
    async def once():
        store = CassetteStore(mode, REDACTOR)
        opened = rig.session(balance, cassettes=store, cassette_mode=mode)
        async with opened:
            with store.episode("e1", folder, "banking"):
                given = rig.agent(server)
                return await aitest_run(given, "hello", session=opened, episode_id="e1")

    return asyncio.run(once())


def test_a_request_that_does_not_fit_the_model_is_replayed(tmp_path):
    too_long = {"status": 400, "code": "context_length_exceeded"}
    with ModelServer([SCRIPT[0], too_long]) as server:
        live = engine_run(tmp_path, "record", server)
        (file,) = tmp_path.rglob("*.yaml")
        recorded = file.read_bytes()
        asked = len(server.requests)
        again = engine_run(tmp_path, "replay", server)
        assert len(server.requests) == asked
        file.write_bytes(recorded.replace(b"status_code: 400", b"status_code: none"))
        with pytest.raises(InputError, match=r"(?s)a recorded response is none.*status_code"):
            engine_run(tmp_path, "replay", server)
    assert (live.stop_reason, live.outcome) == ("context_window", "failed")
    ends = [(one.stop_reason, one.outcome, one.error) for one in (live, again)]
    assert ends[0] == ends[1]
    assert (live.cassette, again.cassette) == (CassetteCounts(live=2), CassetteCounts(hits=2))


@each_row("status", [400, None])
def test_an_overflow_has_the_type_and_text_of_the_recorded_one(status):
    raised = (
        ModelContextWindowExceededError("gpt", "too long")
        if status is None
        else ModelHTTPError.for_category(
            ModelContextWindowExceededError,
            status_code=status,
            model_name="gpt",
            body={"a": SECRET},
        )
    )
    recording = record_overflow(raised, REDACTOR.value)
    assert SECRET not in str(recording)
    with pytest.raises(ModelContextWindowExceededError) as replayed:
        replay_response(recording, request=None)
    assert type(replayed.value) is type(raised)
    assert str(replayed.value) == REDACTOR.text(str(raised))
