"""The API of a request, by its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from ci_agent_eval.steering.proxy.api import Api
from ci_agent_eval.steering.proxy.chat import ChatApi
from ci_agent_eval.steering.proxy.messages import MessagesApi
from ci_agent_eval.steering.proxy.responses import ResponsesApi

ApiName = Literal["chat", "responses", "messages"]

APIS: Mapping[ApiName, Api] = {
    "chat": ChatApi(),
    "responses": ResponsesApi(),
    "messages": MessagesApi(),
}

# Gateways add prefixes to the paths of the APIs. `/threads/ID/messages` of OpenAI's Assistants
# is not Anthropic's `/v1/messages`.
_PATHS: Mapping[ApiName, re.Pattern[str]] = {
    "chat": re.compile(r"/chat/completions/?$"),
    "responses": re.compile(r"/responses/?$"),
    "messages": re.compile(r"/v1/messages/?$"),
}


def find_api(method: str, path: str) -> ApiName | None:
    """Return the API of a request with reviewed answers; None for other requests."""
    if method != "POST":
        return None
    return next((api for api, pattern in _PATHS.items() if pattern.search(path)), None)
