"""Requests to Bedrock, whose signature covers the host."""

from __future__ import annotations

import re
import sys

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.session import Session

from ci_agent_eval.model_traffic.gateway.aws_signing import sign_request
from ci_agent_eval.model_traffic.gateway.server import serve_episode
from tests.integration.model_traffic.gateway.rig import STEPS, new_recorder
from tests.model_server import ModelServer

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA-agent", "AWS_SECRET_ACCESS_KEY": "secret-of-agent"}
MESSAGES = [{"role": "user", "content": [{"text": "How much?"}]}]


@pytest.fixture
def server():
    with ModelServer(STEPS) as server:
        yield server


def create_client(address):
    session = Session()
    session.set_credentials("AKIA-other", "other-secret")
    return session.create_client(
        "bedrock-runtime",
        region_name="eu-west-1",
        endpoint_url=f"{address.url}/bedrock",
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_a_call_is_signed_for_its_upstream_with_the_agents_keys(server):
    recorder = new_recorder()
    environ = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root_url, **KEYS}
    with serve_episode(recorder, environ) as address:
        client = create_client(address)
        answer = client.converse(modelId="m:0", messages=MESSAGES)
        streamed = client.converse_stream(modelId="m:0", messages=MESSAGES)
        events = [next(iter(event)) for event in streamed["stream"]]
        client.close()
    assert answer["output"]["message"]["content"][0]["text"] == "Let me look."
    assert events[-1] == "metadata"
    assert [call.state for call in recorder.calls] == ["complete", "complete"]
    assert recorder.calls[0].url == f"{server.root_url}/model/m%3A0/converse"
    for asked in server.requests:
        authorization = asked.headers["authorization"]
        assert re.search(r"Credential=AKIA-agent/\d+/eu-west-1/bedrock/aws4", authorization)


def test_the_signature_is_that_of_the_upstreams_host():
    url, body = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m%3A0/converse", b"{}"
    client = AWSRequest("POST", "http://127.0.0.1:4000/e/t/bedrock/model/m%3A0/converse", {}, body)
    SigV4Auth(Credentials("AKIA-other", "other-secret"), "bedrock", "eu-west-1").add_auth(client)
    given = [(name.lower().encode(), value.encode()) for name, value in client.headers.items()]
    given += [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]

    signed = dict(sign_request("POST", url, given, body, KEYS))

    expected = AWSRequest("POST", url, {"content-type": "application/json"}, body)
    expected.context["timestamp"] = signed[b"x-amz-date"].decode()
    expected.headers["X-Amz-Date"] = signed[b"x-amz-date"].decode()
    auth = SigV4Auth(Credentials(*KEYS.values()), "bedrock", "eu-west-1")
    text = auth.string_to_sign(expected, auth.canonical_request(expected))
    assert signed[b"authorization"].decode().endswith(auth.signature(text, expected))
    assert signed[b"accept-encoding"] == b"identity"


def test_a_request_with_a_bearer_token_keeps_it():
    given = [(b"authorization", b"Bearer token")]
    assert sign_request("POST", "https://host/", given, b"", {}) == given


def test_without_botocore_the_agent_gets_a_sentence(server, monkeypatch):
    recorder = new_recorder()
    environ = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root_url, **KEYS}
    with serve_episode(recorder, environ) as address:
        client = create_client(address)
        monkeypatch.setitem(sys.modules, "botocore.session", None)
        with pytest.raises(ClientError, match="pip install botocore"):
            client.converse(modelId="m", messages=MESSAGES)
        client.close()
    assert recorder.calls[0].state == "failed"
    assert "pip install botocore" in recorder.calls[0].error
