"""Checks of tool calls: required and forbidden tools, their order, and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from pydantic import NonNegativeInt

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_list,
    format_times,
    require_any,
)
from ci_agent_eval.checks.text import get_tool_calls
from ci_agent_eval.checks.trajectory import pair_in_order
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import SomeTexts, validate_fields
from ci_agent_eval.contract.wording import pluralize


def _describe_uncalled(tools: Iterable[str], episode: Episode) -> str:
    """Describe that no tool was called, with those that the agent could not call."""
    offered = episode.conditions.tools
    missing = [] if offered is None else [tool for tool in tools if tool not in offered]
    remark = f"; not offered: {format_list(missing)}" if missing else ""
    return f"none of them was called{remark}"


def _get_tool_names(episode: Episode) -> list[str]:
    return [call.name for call in get_tool_calls(episode)]


@dataclass(frozen=True, slots=True)
class RequiredTools(BaseCheck):
    """The agent calls each of these tools at least once; the score is the share it called."""

    tools: SomeTexts

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        names = _get_tool_names(episode)
        missing = [tool for tool in self.tools if tool not in set(names)]
        reason = "all of them were called"
        if missing:
            made = f"it called {format_list(names) or 'no tools'}"
            hints = find_misspellings(missing, episode)
            reason = "; ".join((f"never called: {format_list(missing)}", made, *hints))
        score = compute_share(len(self.tools) - len(missing), len(self.tools))
        statement = f"calls {format_list(self.tools)}"
        return (self._build_assertion(statement, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ForbiddenTools(BaseCheck):
    """The agent calls none of these tools."""

    tools: SomeTexts

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        counts = Counter(_get_tool_names(episode))
        used = [
            f"{tool} was called {format_times(counts[tool])}" for tool in self.tools if counts[tool]
        ]
        misspelled = find_misspellings(self.tools, episode)
        reason = format_list((*used, *misspelled)) or _describe_uncalled(self.tools, episode)
        is_passed = not used and not misspelled
        return (self._build_assertion(f"never calls {format_list(self.tools)}", is_passed, reason),)


@dataclass(frozen=True, slots=True)
class OrderedTools(BaseCheck):
    """The agent calls these tools in this order; other calls may come in between.

    The score is the share of them that were called in order (longest common subsequence).
    """

    tools: SomeTexts

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        names = _get_tool_names(episode)
        pairs = pair_in_order(names, list(self.tools), lambda a, b: a == b)
        ordered = {index for _, index in pairs}
        missing = [tool for index, tool in enumerate(self.tools) if index not in ordered]
        reason = f"it called {format_list(names) or 'no tools'}"
        if missing:
            reason = f"not in its place: {format_list(missing)}; {reason}"
        score = compute_share(len(ordered), len(self.tools))
        statement = f"calls {' then '.join(self.tools)}"
        return (self._build_assertion(statement, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ToolCallLimits(BaseCheck):
    """The agent makes no more tool calls than the limits, in total and per tool.

    One assertion for each limit; above it, the score is the limit divided by the calls.
    """

    total: NonNegativeInt | None = None
    per_tool: Mapping[str, NonNegativeInt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate_fields(self)
        require_any("ToolCallLimits", self.total is not None, self.per_tool)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion for each limit, the total first."""
        names = _get_tool_names(episode)
        counts = Counter(names)
        per_tool = [
            self._assert_limit(
                _describe_limit(tool, limit),
                counts[tool],
                limit,
                find_misspellings((tool,), episode),
            )
            for tool, limit in self.per_tool.items()
        ]
        if self.total is None:
            return tuple(per_tool)
        statement = f"makes at most {pluralize(self.total, 'tool call')}"
        return (self._assert_limit(statement, len(names), self.total), *per_tool)

    def _assert_limit(
        self, statement: str, count: int, limit: int, misspelled: Sequence[str] = ()
    ) -> Assertion:
        made = f"called {format_times(count)}" if count else "never called"
        reason = format_list(misspelled) or f"{made}, the limit is {limit}"
        if self.name is not None:
            reason = f"{statement}: {reason}"
        score = min(1.0, compute_share(limit, count))
        passed = count <= limit and not misspelled
        return self._build_assertion(statement, passed, reason, score=score)


def _describe_limit(tool: str, limit: int) -> str:
    return f"calls {tool} at most {format_times(limit)}" if limit else f"never calls {tool}"


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
