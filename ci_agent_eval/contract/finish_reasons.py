"""Normalization of the providers' finish reasons."""

from __future__ import annotations

from collections.abc import Mapping

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "stop": ("end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token"),
    # Anthropic's `model_context_window_exceeded` ends an answer; it rejects no request.
    "length": (
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
    ),
    "content_filter": (
        "content_filtered",
        "guardrail_intervened",
        "refusal",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "image_prohibited_content",
        "model_armor",
    ),
    "tool_call": ("tool_calls", "function_call", "tool_use"),
}
"""Spellings of OpenAI, Anthropic, Google, Bedrock, Cohere and Mistral, mapped as in PydanticAI."""

_KNOWN = {word: reason for reason, words in _SPELLINGS.items() for word in (reason, *words)}


def normalize_finish_reason(word: str) -> str:
    """Return `stop`, `length`, `content_filter` or `tool_call`; an unknown word unchanged."""
    return _KNOWN.get(word.casefold(), word)


def is_finish_reason(word: object) -> bool:
    """Say whether a value is a finish reason of a known provider."""
    return isinstance(word, str) and word.casefold() in _KNOWN
