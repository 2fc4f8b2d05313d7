"""The check that an episode's tool calls match a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import SkipValidation

from ci_agent_eval.checks.arguments import ArgumentRule, arguments_match
from ci_agent_eval.checks.base import BaseCheck, compute_share, format_call, format_list, set_fields
from ci_agent_eval.checks.text import get_tool_calls
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import Share, validate_fields
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError

TrajectoryMode = Literal["strict", "unordered", "subset", "superset", "in_order"]
"""How the calls must relate to the reference's.

`strict`: the same calls in the same order; `unordered`: the same calls in any order;
`subset`: only calls of the reference; `superset`: all calls of the reference, in any order;
`in_order`: all calls of the reference in its order, with others in between.
"""

CallReference = str | ToolCall | tuple[str, Mapping[str, Any]] | Mapping[str, Any]
"""A call: a tool's name (any arguments), a name with arguments, or a call's JSON."""

_STATEMENTS: Mapping[TrajectoryMode, str] = {
    "strict": "makes exactly the reference's tool calls",
    "unordered": "makes the reference's tool calls in any order",
    "subset": "makes no tool calls but the reference's",
    "superset": "makes all of the reference's tool calls",
    "in_order": "makes the reference's tool calls in order",
}


@dataclass(frozen=True, slots=True)
class _ReferenceCall:
    """One call of the reference."""

    call: ToolCall
    any_arguments: bool = False

    def __str__(self) -> str:
        return self.call.name if self.any_arguments else format_call(self.call)


@dataclass(frozen=True, slots=True)
class TrajectoryMatch(BaseCheck):
    """The tool calls match a reference, by a mode and a rule for their arguments.

    `overrides` sets another rule for single tools. The score is the share of paired calls: of
    the reference's calls (`superset`, `in_order`), of the agent's (`subset`), or of both
    (twice the pairs over all calls, the Dice coefficient). Pairs keep the order (longest
    common subsequence) in `strict` and `in_order`. It passes at `threshold` or above.
    """

    reference: SkipValidation[Sequence[CallReference] | Trajectory | Episode]
    mode: TrajectoryMode = "strict"
    arguments: ArgumentRule = "exact"
    overrides: Mapping[str, ArgumentRule] = field(default_factory=dict)
    threshold: Share = 1.0
    _reference_calls: tuple[_ReferenceCall, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate_fields(self)
        set_fields(self, _reference_calls=_parse_reference(self.reference))
        if not self._reference_calls and self.mode in ("superset", "in_order"):
            raise InputError(
                "TrajectoryMatch.reference: the reference has no tool calls, so every trajectory "
                'would match; add one, or use mode="strict"'
            )

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        calls, expected = get_tool_calls(episode), self._reference_calls
        pair = pair_in_order if self.mode in ("strict", "in_order") else pair_in_any_order
        pairs = pair(calls, expected, self._is_pair)
        score = self._compute_score(len(pairs), len(calls), len(expected))
        reason = self._describe_pairs(calls, pairs)
        statement, passed = _STATEMENTS[self.mode], score >= self.threshold
        return (
            self._build_assertion(statement, passed, reason, score=score, threshold=self.threshold),
        )

    def _is_pair(self, call: ToolCall, reference: _ReferenceCall) -> bool:
        if call.name != reference.call.name:
            return False
        default = "ignore" if reference.any_arguments else self.arguments
        rule = self.overrides.get(call.name, default)
        return arguments_match(call.arguments, reference.call.arguments, rule)

    def _compute_score(self, pairs: int, calls: int, wanted: int) -> float:
        if self.mode == "subset":
            return compute_share(pairs, calls)
        if self.mode in ("superset", "in_order"):
            return compute_share(pairs, wanted)
        return compute_share(2 * pairs, calls + wanted)

    def _describe_pairs(self, calls: Sequence[ToolCall], pairs: Pairs) -> str:
        """Describe how many calls pair up, and the unpaired calls that the mode forbids."""
        paired, wanted = {i for i, _ in pairs}, {j for _, j in pairs}
        expected = self._reference_calls
        missing = [call for j, call in enumerate(expected) if j not in wanted]
        extra = [call for i, call in enumerate(calls) if i not in paired]
        parts = [f"{len(pairs)} of the reference's {pluralize(len(expected), 'call')} made"]
        if missing and self.mode != "subset":
            parts.append(f"missing: {format_list(missing)}")
        if extra and self.mode not in ("superset", "in_order"):
            parts.append(f"not of the reference: {format_list(map(format_call, extra))}")
        if missing and len(pair_in_any_order(extra, missing, self._is_pair)) == len(missing):
            parts.append("the order differs")
        return "; ".join(parts)


def _parse_reference(reference: Any) -> tuple[_ReferenceCall, ...]:
    if isinstance(reference, Episode):
        reference = reference.trajectory or Trajectory()
    if isinstance(reference, Trajectory):
        return tuple(_ReferenceCall(call) for call in reference.tool_calls())
    if isinstance(reference, str | Mapping) or not isinstance(reference, Iterable):
        raise InputError(
            "TrajectoryMatch.reference: must be a list of calls, a Trajectory or an Episode, "
            f"got {reference!r}"
        )
    return tuple(_parse_call(item) for item in reference)


def _parse_call(item: Any) -> _ReferenceCall:
    """Parse one call of a reference. Raises InputError."""
    if isinstance(item, str) and item:
        return _ReferenceCall(ToolCall(name=item), any_arguments=True)
    if isinstance(item, ToolCall):
        return _ReferenceCall(item)
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        given = to_jsonable(item.get("arguments"))
        return _ReferenceCall(
            ToolCall(name=item["name"], arguments=given), any_arguments="arguments" not in item
        )
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
        return _ReferenceCall(ToolCall(name=item[0], arguments=to_jsonable(item[1])))
    raise InputError(
        f"TrajectoryMatch.reference: {item!r} is not a call; write a tool's name, "
        '("name", {arguments}) or {"name": …, "arguments": {…}}'
    )


A = TypeVar("A")
B = TypeVar("B")

Pairs = tuple[tuple[int, int], ...]
"""Indices into the first and the second sequence; each index at most once."""


def pair_in_order(
    first: Sequence[A], second: Sequence[B], is_match: Callable[[A, B], bool]
) -> Pairs:
    """Return the largest set of matching pairs that keeps both orders.

    This is a longest common subsequence, by dynamic programming over suffixes (Cormen,
    Leiserson, Rivest, Stein: Introduction to Algorithms, "Longest common subsequence"); of
    several, the one with the earliest pairs.
    """
    table = [[is_match(a, b) for b in second] for a in first]
    best = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in reversed(range(len(first))):
        for j in reversed(range(len(second))):
            skipped = max(best[i + 1][j], best[i][j + 1])
            # Skipping a matching pair never helps: it costs either side one pair at most.
            best[i][j] = best[i + 1][j + 1] + 1 if table[i][j] else skipped
    pairs, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if table[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] == best[i][j]:
            i += 1
        else:
            j += 1
    return tuple(pairs)


def pair_in_any_order(
    first: Sequence[A], second: Sequence[B], is_match: Callable[[A, B], bool]
) -> Pairs:
    """Return the largest set of matching pairs in any order: a maximum bipartite matching.

    A greedy choice can use up an item that another one needs; augmenting paths (Kuhn 1955,
    "The Hungarian method"; Berge 1957) correct it. The search is breadth-first, not recursive,
    so the length of a trajectory is not limited by the stack.
    """
    candidates = [[j for j, b in enumerate(second) if is_match(a, b)] for a in first]
    partners: dict[int, int] = {}
    for i in range(len(first)):
        _augment_matching(i, candidates, partners)
    return tuple(sorted((i, j) for j, i in partners.items()))


def _augment_matching(
    start: int, candidates: Sequence[Sequence[int]], partners: dict[int, int]
) -> None:
    """Match `start` along an augmenting path to a free partner, if there is one."""
    predecessors: dict[int, int] = {}
    queue = [start]
    for i in queue:
        for j in candidates[i]:
            if j in predecessors:
                continue
            predecessors[j] = i
            if j not in partners:
                _move_along_path(j, start, predecessors, partners)
                return
            queue.append(partners[j])


def _move_along_path(
    free: int, start: int, predecessors: dict[int, int], partners: dict[int, int]
) -> None:
    j = free
    while True:
        i = predecessors[j]
        previous = next((old for old, owner in partners.items() if owner == i), None)
        partners[j] = i
        if i == start or previous is None:
            return
        j = previous
