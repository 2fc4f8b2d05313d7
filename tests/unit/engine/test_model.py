from __future__ import annotations

import asyncio
import inspect
import re

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers import infer_provider_class

from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.model import NO_KEY, build_model, build_model_settings
from ci_agent_eval.errors import InputError
from tests.model_server import ModelServer
from tests.tables import each_row

KEY = {"OPENAI_API_KEY": "k-openai", "HOUSE_KEY": "k-house"}
AZURE = {
    "AZURE_OPENAI_API_KEY": "k-azure",
    "AZURE_OPENAI_ENDPOINT": "https://house.openai.azure.com",
    "OPENAI_API_VERSION": "2025-01-01",
}


def key_of(model):
    return model.client.api_key


def test_openais_own_models_are_asked_by_pydantic_ais_default():
    model = build_model(Provider("openai/gpt-5-mini"), KEY)
    assert isinstance(model, OpenAIResponsesModel)
    assert (model.model_name, key_of(model)) == ("gpt-5-mini", "k-openai")


def test_a_server_that_speaks_openais_protocol_speaks_chat_completions():
    model = build_model(Provider("openai:m", base_url="http://127.0.0.1:1/v1"), {})
    assert isinstance(model, OpenAIChatModel)
    assert (model.base_url, key_of(model)) == ("http://127.0.0.1:1/v1/", NO_KEY)
    assert isinstance(build_model(Provider("openai-chat:m"), KEY), OpenAIChatModel)


def test_the_environment_that_is_given_is_the_one_that_counts(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k-of-this-process")
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        build_model(Provider("openai:m"), {})
    given = {**KEY, "OPENAI_BASE_URL": "http://127.0.0.1:2/v1"}
    model = build_model(Provider("openai:m"), given)
    assert (model.base_url, key_of(model)) == ("http://127.0.0.1:2/v1/", "k-openai")


def test_a_named_variable_holds_the_key_and_must():
    named = Provider("openai:m", api_key_env="HOUSE_KEY", base_url="http://127.0.0.1:1/v1")
    assert key_of(build_model(named, KEY)) == "k-house"
    with pytest.raises(InputError, match=r"'openai:m': HOUSE_KEY is not set; .*--cassette=replay"):
        build_model(named, {})


def test_azure_is_found_under_its_own_and_under_litellms_names():
    for environ in (
        AZURE,
        {
            "AZURE_API_KEY": "k-azure",
            "AZURE_API_BASE": "https://house.openai.azure.com",
            "AZURE_API_VERSION": "2025-01-01",
        },
    ):
        model = build_model(Provider("azure/gpt-5-mini"), environ)
        assert (model.system, key_of(model)) == ("azure", "k-azure")
        assert model.base_url.startswith("https://house.openai.azure.com/")
    with pytest.raises(InputError, match="AZURE_OPENAI_ENDPOINT is not set"):
        build_model(Provider("azure/m"), {"AZURE_OPENAI_API_KEY": "k"})


@each_row("model", ["openai:m", "azure/m", "openai-chat:m"])
def test_a_model_that_is_never_asked_needs_no_key(model):
    assert build_model(Provider(model), {}, offline=True).model_name == "m"


@each_row(
    ("model", "said"),
    [
        ("nobody:m", "'nobody:m': Unknown provider: nobody"),
        ("groq:llama", "'groq:llama': its library is not installed; run: pip install"),
    ],
)
def test_a_provider_that_cannot_be_had_is_named(model, said):
    with pytest.raises(InputError, match=said):
        build_model(Provider(model), {"GROQ_API_KEY": "k"})


def test_a_setting_that_the_model_cannot_send_is_refused_instead_of_left_out():
    with pytest.raises(InputError, match=r"'openai:m': it takes no seed; .*openai-chat:MODEL"):
        build_model(Provider("openai:m", seed=0), KEY)
    assert build_model(Provider("openai:m", reasoning_effort="low"), KEY)
    chat = Provider("openai:m", seed=1, base_url="http://127.0.0.1:1/v1")
    assert isinstance(build_model(chat, {}), OpenAIChatModel)


SAMPLING = [
    ("openai:gpt-5-mini", None, False),
    ("openai:gpt-5-mini", "none", False),
    ("openai-chat:o3", None, False),
    ("openai:gpt-5.2", None, True),
    ("openai:gpt-5.2", "low", False),
    ("openai:gpt-5.2", "none", True),
    ("openai-chat:gpt-4o", None, True),
    ("openai-chat:own", None, True),
    ("anthropic:claude-opus-4-7", None, False),
    ("anthropic:claude-haiku-4-5", None, True),
]


@pytest.mark.parametrize(("name", "effort", "is_sent"), SAMPLING)
@pytest.mark.parametrize("setting", ["temperature", "top_p"])
@pytest.mark.filterwarnings("ignore:Sampling parameters:UserWarning")
def test_a_sampling_setting_is_sent_or_refused(name, effort, is_sent, setting):
    """What PydanticAI makes of the setting is read from the request."""
    settings = {setting: 0.5, "reasoning_effort": effort}
    with ModelServer(["Hi"] * 2) as server:
        url = server.root_url if name.startswith("anthropic") else server.base_url
        chat = name.replace("openai:", "openai-chat:")
        model = build_model(Provider(chat, base_url=url), KEY)
        request = ModelRequest(parts=[UserPromptPart("Hi")])
        wanted = build_model_settings(Provider(chat, **settings))
        asyncio.run(model.request([request], wanted, ModelRequestParameters()))
        assert (setting in server.requests[0].body) == is_sent
    if is_sent:
        assert build_model(Provider(name, **settings), KEY | {"ANTHROPIC_API_KEY": "k"})
    else:
        with pytest.raises(InputError, match=f"'{name}': it takes no {setting}; leave it out$"):
            build_model(Provider(name, **settings), KEY | {"ANTHROPIC_API_KEY": "k"})


@each_row("name", ["openai", "openai-responses", "anthropic", "deepseek", "openrouter", "ollama"])
def test_every_provider_takes_the_address_of_another_server(name):
    provider = Provider(f"{name}:a/m", base_url="http://127.0.0.1:1/v1")
    assert build_model(provider, {}).base_url.startswith("http://127.0.0.1:1/v1")


def vendor_of(name):
    """The host that a provider's client would ask where only its name is given."""
    try:
        model = build_model(Provider(f"{name}:m", api_key_env="HOUSE_KEY"), KEY)
    except InputError:
        return None  # not installed, or it asks for more than a key: nothing is sent
    return str(model.base_url)


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # of providers that are gone
def test_no_provider_asks_openai_but_openai_s_own():
    names = re.findall(r"'([a-z0-9-]+)'", inspect.getsource(infer_provider_class))
    asked = {name: vendor_of(name) for name in names}
    assert {"litellm", "deepseek", "openai"} <= asked.keys()
    assert sum(address is not None for address in asked.values()) > 5
    openai = {name for name, address in asked.items() if address and "openai.com" in address}
    assert openai
    assert all(name.startswith("openai") for name in openai)


def test_litellm_needs_the_address_of_a_server():
    with pytest.raises(InputError, match=r"'litellm:m': it has no address .* set base_url"):
        build_model(Provider("litellm:m"), {**KEY, "OPENAI_BASE_URL": "http://127.0.0.1:2/v1"})
    model = build_model(Provider("litellm:m", base_url="http://127.0.0.1:1/v1"), KEY)
    assert model.base_url == "http://127.0.0.1:1/v1/"
