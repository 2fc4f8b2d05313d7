"""A report format: the headline as the message of a chat's webhook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ChatMessage:
    """Writes `chat.json`."""

    file_name = "chat.json"
    beginning = '{\n  "text":'

    def render(self, verdict: Mapping[str, Any]) -> str:
        return json.dumps({"text": verdict["headline"]}, indent=2) + "\n"
