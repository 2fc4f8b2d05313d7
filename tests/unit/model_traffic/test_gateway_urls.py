from __future__ import annotations

from ci_agent_eval.model_traffic import attribution


def test_only_requests_to_a_listening_gateway_are_the_gateways():
    attribution.add_gateway_url("http://127.0.0.1:4000")
    try:
        assert attribution.is_gateway_url("http://127.0.0.1:4000/e/a/openai/v1/responses")
        assert not attribution.is_gateway_url("http://127.0.0.1:40001/e/a/openai/v1/responses")
    finally:
        attribution.remove_gateway_url("http://127.0.0.1:4000")
    assert not attribution.is_gateway_url("http://127.0.0.1:4000/e/a/openai/v1/responses")
