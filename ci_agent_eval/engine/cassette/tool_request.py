"""The call of a tool as a request of a cassette. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ci_agent_eval.engine.cassette.canonical import Convert, hash_json


@dataclass(frozen=True)
class ToolRequest:
    """A call of a tool."""

    tool: str
    arguments: Any

    @cached_property
    def key(self) -> str:
        """The digest of the call."""
        return hash_json({"tool": self.tool, "arguments": self.arguments})

    def convert(self, convert: Convert) -> ToolRequest:
        """Return the call with converted values."""
        return replace(self, arguments=convert(self.arguments))
