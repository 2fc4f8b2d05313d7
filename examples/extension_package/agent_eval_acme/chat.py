"""A report format: the headline as the message of a chat's webhook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ChatMessage:
    """Writes `chat.json`."""

    file_name = "chat.json"
    prefix = '{\n  "generator": "agent-eval-acme"'

    def render(self, verdict: Mapping[str, Any]) -> str:
        message = {"generator": "agent-eval-acme", "text": verdict["headline"]}
        return json.dumps(message, indent=2) + "\n"
