"""Misspelled names of tools: a tool that nobody offers is never called, so a ban of it passes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from ci_agent_eval.checks.exchanges import get_tool_calls
from ci_agent_eval.contract.episode import Episode

_LEAST_RATIO = 0.9
"""Of `difflib`; below it are names such as `refund_full` and `refund_half`."""


def describe_misspelling(name: str, tools: Iterable[str]) -> str | None:
    """Return a sentence if a name is not among the tools, but is probably meant to be one."""
    known = sorted(set(tools))
    if name in known:
        return None
    meant = next((tool for tool in known if _is_similar(name, tool)), None)
    if meant is None:
        return None
    return f"no tool {name!r} was offered or called; did you mean {meant!r}?"


def find_misspellings(tools: Iterable[str], episode: Episode) -> list[str]:
    """Return a sentence for each misspelled name; none if the offered tools are not known."""
    offered = episode.conditions.tools
    if offered is None:
        return []
    known = {*offered, *(call.name for call in get_tool_calls(episode))}
    sentences = (describe_misspelling(tool, known) for tool in tools)
    return [sentence for sentence in sentences if sentence is not None]


def _is_similar(name: str, tool: str) -> bool:
    # The first letter is seldom mistyped, and tells `get_user` from `set_user`.
    if not name or not tool or name[0].casefold() != tool[0].casefold():
        return False
    is_swapped = sorted(name.casefold()) == sorted(tool.casefold())
    return is_swapped or SequenceMatcher(None, name, tool).ratio() >= _LEAST_RATIO
