from __future__ import annotations

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.gateway.providers import (
    DUMMY_KEY,
    MODEL_PROVIDERS,
    build_environment,
    build_routes,
)
from tests.tables import each_row

URL = "http://127.0.0.1:4000/e/token"


def target(provider, path, environ=(), region=None):
    upstream, rest = build_routes(dict(environ))[provider].find_upstream(path.encode(), region)
    return upstream.origin + (upstream.prefix + rest).decode()


GOOGLE = "https://generativelanguage.googleapis.com"
HERE = "http://localhost:4000"


@each_row(
    ("provider", "path", "environ", "expected"),
    [
        ("openai", "/v1/responses", {}, "https://api.openai.com/v1/responses"),
        ("openai", "/responses", {}, "https://api.openai.com/v1/responses"),
        ("openai", "/v1/x", {"OPENAI_BASE_URL": f"{HERE}/team/"}, f"{HERE}/team/x"),
        ("openai", "/v1/x", {"OPENAI_API_BASE": f"{HERE}/v1"}, f"{HERE}/v1/x"),
        ("anthropic", "/v1/messages", {}, "https://api.anthropic.com/v1/messages"),
        ("anthropic", "/messages", {}, "https://api.anthropic.com/v1/messages"),
        ("anthropic", "/v1/x", {"ANTHROPIC_BASE_URL": f"{HERE}/v1"}, f"{HERE}/v1/x"),
        ("gemini", "/v1beta/models/m:x", {}, f"{GOOGLE}/v1beta/models/m:x"),
        ("bedrock", "/model/m%3A0/x", {"AWS_REGION": "eu-west-1"},
         "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m%3A0/x"),
        ("groq", "/openai/v1/x", {}, "https://api.groq.com/openai/v1/x"),
    ],
)  # fmt: skip
def test_the_upstream_is_the_provider_or_what_the_variables_say(provider, path, environ, expected):
    assert target(provider, path, environ) == expected


def test_the_region_of_a_signature_counts_before_that_of_the_environment():
    environ = {"AWS_REGION": "eu-west-1"}
    assert "us-east-1" in target("bedrock", "/model/m/converse", environ, "us-east-1")
    with pytest.raises(InputError, match="Set AWS_REGION"):
        target("bedrock", "/model/m/converse")


def test_a_provider_without_an_address_says_which_variable_to_set():
    with pytest.raises(InputError, match="Set AZURE_OPENAI_ENDPOINT for the agent"):
        target("azure", "/openai/deployments/d/chat/completions")


def test_variables_that_differ_are_refused():
    environ = {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_BASE": "http://b/v1"}
    with pytest.raises(InputError, match="OPENAI_BASE_URL and OPENAI_API_BASE hold different"):
        build_routes(environ)
    assert build_routes({**environ, "OPENAI_API_BASE": "http://a/v1/"})["openai"].base_url


def test_base_urls_contain_the_version_only_where_the_sdks_expect_it():
    variables = build_environment(URL, {}, is_replay=False)
    assert variables["OPENAI_BASE_URL"] == variables["OPENAI_API_BASE"] == f"{URL}/openai/v1"
    assert variables["ANTHROPIC_BASE_URL"] == f"{URL}/anthropic"
    assert variables["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] == f"{URL}/bedrock"
    assert not [name for name in variables if name.startswith("AZURE") or "KEY" in name]


def test_a_provider_without_a_default_address_is_passed_only_if_the_user_has_one():
    environ = {"AZURE_OPENAI_ENDPOINT": "https://example.openai.azure.com"}
    variables = build_environment(URL, environ, is_replay=False)
    assert variables["AZURE_OPENAI_ENDPOINT"] == f"{URL}/azure"
    assert "AZURE_API_BASE" not in variables


def test_in_replay_all_keys_that_are_named_are_dummies():
    environ = {"ANTHROPIC_API_KEY": "sk-1", "AWS_SESSION_TOKEN": "secret", "OTHER": "kept"}
    variables = build_environment(URL, environ, is_replay=True)
    keys = {name: value for name, value in variables.items() if value == DUMMY_KEY}
    assert set(keys) == {"ANTHROPIC_API_KEY", "AWS_SESSION_TOKEN"}


def test_in_replay_clients_without_any_key_get_one_of_each_provider():
    variables = build_environment(URL, {}, is_replay=True)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        assert variables[name] == DUMMY_KEY
    # The SDK warns about two keys of Google, and a session token needs the service.
    assert "GOOGLE_API_KEY" not in variables
    assert "AWS_SESSION_TOKEN" not in variables


@each_row("name", ["HTTP_PROXY", "all_proxy"])
def test_a_proxy_does_not_get_the_requests_to_the_gateway(name):
    variables = build_environment(
        URL, {name: "http://proxy:3128", "NO_PROXY": "internal"}, is_replay=False
    )
    assert variables["NO_PROXY"] == variables["no_proxy"] == "internal,127.0.0.1"
    assert "NO_PROXY" not in build_environment(URL, {}, is_replay=False)


def test_each_variable_belongs_to_one_provider():
    names = [
        name
        for provider in MODEL_PROVIDERS
        for name in (*provider.url_variables, *provider.key_variables)
    ]
    assert len(names) == len(set(names))
