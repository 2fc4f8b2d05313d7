"""The formats, and the one that a request belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from ci_agent_eval.model_traffic.formats.anthropic_messages import AnthropicMessages
from ci_agent_eval.model_traffic.formats.bedrock_converse import BedrockConverse
from ci_agent_eval.model_traffic.formats.gemini import Gemini
from ci_agent_eval.model_traffic.formats.openai_chat import OpenAIChat
from ci_agent_eval.model_traffic.formats.openai_responses import OpenAIResponses
from ci_agent_eval.model_traffic.formats.protocol import Format
from ci_agent_eval.model_traffic.messages import FormatName

_ALL: tuple[Format, ...] = (
    OpenAIChat(),
    OpenAIResponses(),
    AnthropicMessages(),
    Gemini(),
    BedrockConverse(),
)

FORMATS: Mapping[FormatName, Format] = MappingProxyType({item.name: item for item in _ALL})
"""The formats by their names."""


def find_format(method: str, url: str) -> Format | None:
    """Return the format of a request by its method and address; None if it is no model call."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    return next((item for item in _ALL if item.matches(method.upper(), path)), None)
