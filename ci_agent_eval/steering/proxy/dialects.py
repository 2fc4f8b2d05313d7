"""The API of a request, by its path."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ci_agent_eval.steering.proxy.chat import ChatDialect
from ci_agent_eval.steering.proxy.dialect import Dialect
from ci_agent_eval.steering.proxy.error_response import Api
from ci_agent_eval.steering.proxy.messages import MessagesDialect
from ci_agent_eval.steering.proxy.responses import ResponsesDialect

DIALECTS: Mapping[Api, Dialect] = {
    "chat": ChatDialect(),
    "responses": ResponsesDialect(),
    "messages": MessagesDialect(),
}

# Gateways add prefixes to the paths of the APIs. `/threads/ID/messages` of OpenAI's Assistants
# is not Anthropic's `/v1/messages`.
_PATHS: Mapping[Api, re.Pattern[str]] = {
    "chat": re.compile(r"/chat/completions/?$"),
    "responses": re.compile(r"/responses/?$"),
    "messages": re.compile(r"/v1/messages/?$"),
}


def find_api(method: str, path: str) -> Api | None:
    """Return the API of a request with reviewed answers; None for other requests."""
    if method != "POST":
        return None
    return next((api for api, pattern in _PATHS.items() if pattern.search(path)), None)
