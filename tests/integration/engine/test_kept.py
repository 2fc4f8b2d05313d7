"""What a session keeps of thousands of episodes: no more than of a few."""

from __future__ import annotations

import gc
import time
import weakref

from ci_agent_eval.engine.cassette.store import MAX_CACHED, CassetteStore
from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.engine.session import MAX_LOOPS, EngineSession
from ci_agent_eval.redaction import Redactor


def test_declarations_that_tests_make_themselves_are_not_all_kept():
    session = EngineSession({}, time.monotonic)
    provider = Provider("openai:m", base_url="http://localhost")
    first = Agent(provider)
    loop = weakref.ref(session.get_loop(first))
    assert session.get_loop(first) is loop()
    for _ in range(MAX_LOOPS):
        session.get_loop(Agent(provider))
    gc.collect()
    assert loop() is None


def test_cassettes_that_were_read_are_not_all_kept(tmp_path):
    store = CassetteStore("replay", Redactor())
    for number in range(MAX_CACHED + 5):
        with store.episode(f"episode {number}", tmp_path, f"scenario {number}"):
            pass
    assert len(store._read) == MAX_CACHED
