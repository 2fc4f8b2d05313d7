"""Which tools an agent has to call, must not call, and in which order, and how often it may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_agent_eval.checks.alignment import aligned
from ci_agent_eval.checks.base import Named, Texts, keep, not_empty, share, texts, whole
from ci_agent_eval.checks.exchanges import calls
from ci_agent_eval.checks.shown import listed, times
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.wording import pluralize


def _called(episode: Episode) -> list[str]:
    return [call.name for call in calls(episode)]


@dataclass(frozen=True, slots=True)
class RequiredTools(Named):
    """The agent calls each of these tools at least once; the score is the share it called."""

    tools: Texts

    def __post_init__(self) -> None:
        keep(self, tools=texts("RequiredTools", "tools", self.tools))
        not_empty("RequiredTools", self.tools)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        missing = [tool for tool in self.tools if tool not in set(_called(episode))]
        reason = f"never called: {listed(missing)}" if missing else "all of them were called"
        score = share(len(self.tools) - len(missing), len(self.tools))
        says = f"calls {listed(self.tools)}"
        return (self._assertion(says, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ForbiddenTools(Named):
    """The agent calls none of these tools."""

    tools: Texts

    def __post_init__(self) -> None:
        keep(self, tools=texts("ForbiddenTools", "tools", self.tools))
        not_empty("ForbiddenTools", self.tools)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        counts = Counter(_called(episode))
        used = [f"{tool} was called {times(counts[tool])}" for tool in self.tools if counts[tool]]
        reason = listed(used) if used else "none of them was called"
        return (self._assertion(f"never calls {listed(self.tools)}", not used, reason),)


@dataclass(frozen=True, slots=True)
class OrderedTools(Named):
    """The agent calls these tools in this order, with any others before, between and after.

    The score is the share of them that were called in order (longest common subsequence).
    """

    tools: Texts

    def __post_init__(self) -> None:
        keep(self, tools=texts("OrderedTools", "tools", self.tools))
        not_empty("OrderedTools", self.tools)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = _called(episode)
        held = {at for _, at in aligned(made, list(self.tools), lambda a, b: a == b)}
        missing = [tool for at, tool in enumerate(self.tools) if at not in held]
        reason = f"it called {listed(made) or 'no tools'}"
        if missing:
            reason = f"not in its place: {listed(missing)}; {reason}"
        score = share(len(held), len(self.tools))
        says = f"calls {' then '.join(self.tools)}"
        return (self._assertion(says, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ToolCallLimits(Named):
    """The agent makes at most so many tool calls, in total and of each tool named.

    One assertion for each limit; over it, the score is the limit's share of the calls.
    """

    total: int | None = None
    per_tool: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total is not None:
            whole("ToolCallLimits", "total", self.total)
        for tool, limit in self.per_tool.items():
            whole("ToolCallLimits", f"per_tool[{tool!r}]", limit)
        keep(self, per_tool=dict(self.per_tool))
        not_empty("ToolCallLimits", () if self.total is None else (self.total,), [*self.per_tool])

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion for each limit, the total first."""
        made = _called(episode)
        counts = Counter(made)
        of_tools = [
            self._held(_calls(tool, limit), counts[tool], limit)
            for tool, limit in self.per_tool.items()
        ]
        if self.total is None:
            return tuple(of_tools)
        says = f"makes at most {pluralize(self.total, 'tool call')}"
        return (self._held(says, len(made), self.total), *of_tools)

    def _held(self, says: str, count: int, limit: int) -> Assertion:
        made = f"called {times(count)}" if count else "never called"
        reason = f"{made}, the limit is {limit}"
        if self.name is not None:
            reason = f"{says}: {reason}"
        return self._assertion(says, count <= limit, reason, score=min(1.0, share(limit, count)))


def _calls(tool: str, limit: int) -> str:
    return f"calls {tool} at most {times(limit)}" if limit else f"never calls {tool}"
