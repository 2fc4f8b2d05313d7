"""The formats, and the one that a request belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from ci_agent_eval.model_traffic.formats.anthropic_messages import ANTHROPIC_MESSAGES
from ci_agent_eval.model_traffic.formats.bedrock_converse import BEDROCK_CONVERSE
from ci_agent_eval.model_traffic.formats.gemini import GEMINI
from ci_agent_eval.model_traffic.formats.json_values import list_objects, parse_object
from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.formats.openai_chat import OPENAI_CHAT
from ci_agent_eval.model_traffic.formats.openai_responses import OPENAI_RESPONSES
from ci_agent_eval.model_traffic.messages import FormatName

_ALL = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC_MESSAGES, GEMINI, BEDROCK_CONVERSE)

FORMATS: Mapping[FormatName, Format] = MappingProxyType({item.name: item for item in _ALL})
"""The formats by their names."""


def find_format(method: str, url: str) -> Format | None:
    """Return the format of a request by its method and address; None if no format has them.

    Other services have such addresses too: `is_model_request` decides.
    """
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    is_post = method.upper() == "POST"
    return next((item for item in _ALL if is_post and item.path.search(path)), None)


def is_model_request(message_format: Format, body: bytes) -> bool:
    """Return whether a body is a request of the format, as far as any provider accepts it."""
    request = parse_object(body) or {}
    if message_format.conversation == "input":
        return "input" in request and not {"model", "prompt"}.isdisjoint(request)
    messages = request.get(message_format.conversation)
    needed = {"role"} if message_format.conversation == "messages" else set()
    return isinstance(messages, list) and all(needed <= set(m) for m in list_objects(messages))
