"""Prices of calls, compared with those that genai-prices computes of counted tokens."""

from __future__ import annotations

from genai_prices import Usage, calc_price

from ci_agent_eval.model_traffic.pricing import CallPrice, price_usage
from tests.tables import each_row

CHAT = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 50},
    "completion_tokens_details": {"reasoning_tokens": 40},
}
RESPONSES = {
    "input_tokens": 1000,
    "output_tokens": 100,
    "input_tokens_details": {"cached_tokens": 600},
}
MESSAGES = {
    "input_tokens": 100,
    "output_tokens": 100,
    "cache_read_input_tokens": 600,
    "cache_creation_input_tokens": 300,
    "server_tool_use": {"web_search_requests": 2},
}
GEMINI = {"promptTokenCount": 1000, "candidatesTokenCount": 60, "thoughtsTokenCount": 40}
CONVERSE = {"inputTokens": 400, "outputTokens": 100, "cacheReadInputTokens": 600}
LOCAL = "http://127.0.0.1:8000/v1/any"


COUNTED = {"input_tokens": 1000, "output_tokens": 100}
CACHED = COUNTED | {"cache_read_tokens": 600}
WRITTEN = CACHED | {"cache_write_tokens": 300}
REASONED = {"output_reasoning_tokens": 40}
PLAIN = {"prompt_tokens": 1000, "completion_tokens": 100}
# xAI counts reasoning apart from the completion.
XAI = PLAIN | {"completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 40}}
CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"
NOVA = "us.amazon.nova-pro-v1:0"


@each_row(
    ("name", "model", "usage", "host", "provider", "counted"),
    [
        ("openai-chat", "gpt-4o-audio-preview", CHAT, "api.openai.com",
         "openai", CACHED | REASONED | {"input_audio_tokens": 50}),
        ("openai-chat", "llama-3.3-70b-versatile", PLAIN, "api.groq.com", "groq", COUNTED),
        ("openai-chat", "grok-4", XAI, "api.x.ai", "x-ai", COUNTED),
        ("openai-responses", "gpt-5", RESPONSES, "me.openai.azure.com", "azure", CACHED),
        ("anthropic-messages", "claude-sonnet-4-5", MESSAGES, "api.anthropic.com",
         "anthropic", WRITTEN | {"web_searches": 2}),
        ("anthropic-messages", "anthropic/claude-sonnet-4.5", MESSAGES, "openrouter.ai/api",
         "openrouter", WRITTEN | {"web_searches": 2}),
        ("anthropic-messages", CLAUDE, MESSAGES, "bedrock-runtime.us-east-1.amazonaws.com",
         "aws", WRITTEN),
        ("gemini", "gemini-2.5-flash", GEMINI, "generativelanguage.googleapis.com",
         "google", COUNTED | REASONED),
        ("bedrock-converse", NOVA, CONVERSE, "bedrock-runtime.us-east-1.amazonaws.com",
         "aws", CACHED),
    ],
)  # fmt: skip
def test_a_call_is_priced_by_the_provider_at_its_address(
    *, name, model, usage, host, provider, counted
):
    cost = float(calc_price(Usage(**counted), model, provider_id=provider).total_price)
    assert cost > 0
    url = f"https://{host}/v1/any"
    assert price_usage(name, (model,), usage, url) == CallPrice(cost, model, False)


@each_row(
    ("name", "model", "usage", "address"),
    [
        ("openai-chat", "gpt-4o-mini", CHAT, "https://api.openai.com/v1"),
        ("openai-responses", "gpt-5", RESPONSES, "https://api.openai.com/v1"),
        ("anthropic-messages", "claude-sonnet-4-5", MESSAGES, "https://api.anthropic.com/v1"),
        ("gemini", "gemini-2.5-flash", GEMINI, "https://generativelanguage.googleapis.com/v1"),
        ("bedrock-converse", NOVA, CONVERSE, "https://bedrock-runtime.us-east-1.amazonaws.com/x"),
    ],
)
@each_row("url", [LOCAL, "https://models.example.com/v1/any", "http://["])
def test_at_an_unknown_address_it_is_the_price_of_the_formats_vendor(
    name, model, usage, address, url
):
    price = price_usage(name, (model,), usage, url)
    known = price_usage(name, (model,), usage, address)
    assert known is not None
    assert price == CallPrice(known.cost_usd, model, True)


def test_the_model_that_answered_is_priced_before_the_one_that_was_asked():
    url = "https://me.openai.azure.com/openai/deployments/mine/chat/completions"
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    both = price_usage("openai-chat", ("gpt-4o-mini-2024-07-18", "gpt-5"), usage, url)
    assert both is not None
    assert both.model == "gpt-4o-mini-2024-07-18"
    asked = price_usage("openai-chat", ("served-by-us", "gpt-4o-mini"), usage, url)
    assert asked is not None
    assert (asked.model, asked.cost_usd) == ("gpt-4o-mini", both.cost_usd)


@each_row(
    ("name", "models", "usage", "url"),
    [
        ("openai-chat", ("our-model",), CHAT, LOCAL),
        ("openai-chat", ("claude-sonnet-4-5",), CHAT, LOCAL),
        ("openai-chat", ("our-model",), CHAT, "https://api.openai.com/v1/chat/completions"),
        ("openai-chat", (), CHAT, LOCAL),
        ("openai-chat", ("gpt-4o-mini",), {}, LOCAL),
        ("openai-chat", ("gpt-4o-mini",), {"prompt_tokens": "many"}, LOCAL),
    ],
)
def test_without_a_known_model_and_usage_there_is_no_price(name, models, usage, url):
    assert price_usage(name, models, usage, url) is None
