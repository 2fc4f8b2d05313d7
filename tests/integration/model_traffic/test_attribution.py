"""Each model call belongs to the episode that made it, also from tasks, threads and executors."""

from __future__ import annotations

import asyncio
import contextvars
import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from ci_agent_eval.model_traffic import attribution
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer


def body(text: str):
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def prompts(recorder) -> list[str]:
    return [json.loads(call.body)["messages"][0]["content"] for call in recorder.calls]


@pytest.fixture
def server():
    with ModelServer(["hi"]) as server:
        yield server


class AskingThread(threading.Thread):
    def __init__(self, ask):
        super().__init__()
        self.ask = ask

    def run(self):
        self.ask()


def start_thread(ask):
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()


def start_subclass(ask):
    thread = AskingThread(ask)
    thread.start()
    thread.join()


def submit(ask):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask).result()


def run_in_executor(ask):
    async def main():
        await asyncio.get_running_loop().run_in_executor(None, ask)

    asyncio.run(main())


def start_thread_in_thread(ask):
    start_thread(lambda: start_thread(ask))


@pytest.mark.parametrize(
    "run",
    [
        start_thread,
        start_subclass,
        submit,
        run_in_executor,
        start_thread_in_thread,
    ],
)
def test_a_thread_belongs_to_the_episode_that_starts_it(run, server, hooked):
    def ask():
        requests.post(server.chat_url, json=body("in a thread"))

    with run_episode() as other, run_episode() as recorder:
        run(ask)
    assert prompts(recorder) == ["in a thread"]
    assert other.calls == ()


def test_a_pool_serves_each_episode_that_submits(server, hooked):
    def ask(text):
        requests.post(server.chat_url, json=body(text))

    with ThreadPoolExecutor(1) as pool:
        with run_episode() as first:
            pool.submit(ask, "first").result()
        with run_episode() as second, run_episode():
            with attribution.use_recorder(second):
                pool.submit(ask, "second").result()
            with attribution.use_recorder(None):
                pool.submit(ask, text="third").result()
        assert prompts(first) == ["first"]
        assert prompts(second) == ["second"]
        [unattributed] = attribution.take_unattributed()
    assert unattributed.url == server.chat_url
    assert unattributed.method == "POST"
    assert unattributed.running[0] is second


class Worker:
    """A thread that began before the episode, fed by a queue."""

    def __init__(self, url):
        self.url = url
        self.jobs = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while (job := self.jobs.get()) is not None:
            text, done = job
            requests.post(self.url, json=body(text))
            done.set()

    def ask(self, text):
        done = threading.Event()
        self.jobs.put((text, done))
        assert done.wait(600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.jobs.put(None)
        self.thread.join()


def test_a_worker_from_before_is_assigned_to_the_only_episode(server, hooked):
    with Worker(server.chat_url) as worker, run_episode() as recorder:
        worker.ask("who am I?")
    assert prompts(recorder) == ["who am I?"]
    assert recorder.is_shared


def test_a_worker_from_before_is_unattributed_among_several(server, hooked):
    with Worker(server.chat_url) as worker, run_episode() as first, run_episode() as second:
        worker.ask("who am I?")
        [unattributed] = attribution.take_unattributed()
    assert unattributed.running == (first, second)
    assert first.calls == second.calls == ()
    assert not first.is_shared
    assert len(server.requests) == 1


def test_a_judges_threads_stay_unseen(server, recorder):
    with attribution.suspend_recording():
        start_thread(lambda: requests.post(server.chat_url, json=body("judge")))
        submit(lambda: requests.post(server.chat_url, json=body("judge")))
    assert len(server.requests) == 2
    assert recorder.calls == ()


def test_a_thread_sees_no_other_context_variable(recorder):
    """As without the hooks: an agent must not find values that production does not show it."""
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("set by the episode")
    seen = []
    start_thread(lambda: seen.append(variable.get()))
    submit(lambda: seen.append(variable.get()))
    assert seen == ["default", "default"]
