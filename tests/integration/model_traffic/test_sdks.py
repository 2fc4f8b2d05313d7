"""The providers' SDKs are seen, refused and replayed; they notice nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import botocore.config
import botocore.exceptions
import botocore.session
import openai
import pytest

from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.recorder import READER_STOPPED
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer, Step

PROMPT = [{"role": "user", "content": "hello"}]


def stream_openai(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        chunks = client.chat.completions.create(model="m", messages=PROMPT, stream=True)
        return [chunk.model_dump() for chunk in chunks]


def create_bedrock(url):
    return botocore.session.Session().create_client(
        "bedrock-runtime",
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id="id",
        aws_secret_access_key="key",
        config=botocore.config.Config(retries={"total_max_attempts": 3, "mode": "standard"}),
    )


CONVERSATION = [{"role": "user", "content": [{"text": "hello"}]}]


def ask_bedrock(url):
    client = create_bedrock(url)
    answer = client.converse(modelId="m", messages=CONVERSATION)
    client.close()
    return [answer["output"], answer["usage"], answer["stopReason"]]


def stream_bedrock(url):
    client = create_bedrock(url)
    events = list(client.converse_stream(modelId="m", messages=CONVERSATION)["stream"])
    client.close()
    return events


@dataclass(frozen=True)
class SDK:
    ask: Callable[[str], list[Any]]
    refused: type[Exception]


SDKS = [
    SDK(stream_openai, openai.BadRequestError),
    SDK(ask_bedrock, botocore.exceptions.ClientError),
    SDK(stream_bedrock, botocore.exceptions.ClientError),
]
STEP = Step(text="hello there", usage={"input": 7, "output": 3})


@pytest.fixture(params=SDKS, ids=lambda sdk: sdk.ask.__name__)
def sdk(request) -> SDK:
    return request.param


def test_each_request_is_recorded_once(sdk):
    with ModelServer([STEP]) as server:
        bare = sdk.ask(server.root_url)
        with hooks.use(), run_episode() as recorder:
            assert sdk.ask(server.root_url) == bare
    assert len(server.requests) == 2
    [call] = recorder.calls
    assert (call.state, call.error, call.answer.text) == ("complete", None, "hello there")
    assert call.request.messages[-1].text == "hello"
    assert call.request.model == "m"


def test_a_refused_sdk_raises_at_once(sdk):
    with (
        ModelServer([STEP]) as server,
        hooks.use(),
        run_episode(check_limits=lambda _: "over budget: 1 turn") as recorder,
        pytest.raises(sdk.refused, match="over budget: 1 turn"),
    ):
        sdk.ask(server.root_url)
    assert not server.requests
    assert [call.state for call in recorder.calls] == ["refused"]


class Player:
    """Answers as the recorded calls were answered."""

    def __init__(self, calls):
        self.answers = [HTTPAnswer(call.status, call.headers, tuple(call.chunks)) for call in calls]

    def find_answer(self, call):
        return self.answers[call.number - 1]

    def store(self, call):
        raise AssertionError


def test_a_replayed_answer_is_the_same_to_the_sdk(sdk):
    with ModelServer([STEP]) as server, hooks.use():
        with run_episode() as recorder:
            live = sdk.ask(server.root_url)
        url = server.root_url
    with hooks.use(), run_episode(player=Player(recorder.calls)) as replayed:
        assert sdk.ask(url) == live
    [call] = replayed.calls
    assert (call.state, call.source) == ("complete", "replayed")
    assert call.answer == recorder.calls[0].answer


def test_a_cancelled_request_has_failed():
    async def main(server):
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
            task = asyncio.create_task(client.chat.completions.create(model="m", messages=PROMPT))
            await server.requests_arrived(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with ModelServer([Step(hang=True)]) as server, hooks.use(), run_episode() as recorder:
        asyncio.run(main(server))
    [call] = recorder.calls
    assert (call.state, call.error) == ("failed", f"{READER_STOPPED}: CancelledError")
