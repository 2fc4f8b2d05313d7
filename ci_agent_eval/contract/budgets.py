"""Budgets: what an episode may use, and what it used.

Each budget is written as a bare limit (`"max_turns": 5`) or as an object
(`{"used": 3, "limit": 4, "hard": false}`). Latency names its statistic in
place of `used`: `{"p95": 1200, "limit": 2000}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ci_agent_eval.contract.base import Amount, Frozen

Statistic = Literal["p50", "p90", "p95", "p99", "max", "mean", "total"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
DEFAULT_STATISTIC: Statistic = "p95"


class Budget(Frozen):
    """A limit, what was used of it (None: not measured), and whether it is hard."""

    used: Amount | None = None
    limit: Amount
    unit: str | None = None
    hard: bool = Field(default=True, description="a hard budget gates; a soft one warns")

    @model_validator(mode="before")
    @classmethod
    def _accept_bare_limit(cls, value: Any) -> Any:
        """Read a bare number as the limit; refuse booleans, which Python counts as numbers."""
        if isinstance(value, bool):
            raise ValueError("a budget is a limit or an object with a limit, not true or false")  # noqa: TRY004 - pydantic turns ValueError into its own error
        return {"limit": value} if isinstance(value, int | float) else value


class LatencyBudget(Budget):
    """A limit in milliseconds on one statistic of the agent's turn latencies."""

    unit: str | None = "ms"
    statistic: Statistic = DEFAULT_STATISTIC

    @model_validator(mode="before")
    @classmethod
    def _accept_named_statistic(cls, value: Any) -> Any:
        """Turn `{"p95": 1200, "limit": 2000}` into its fields."""
        if not isinstance(value, Mapping):
            return value
        named = [name for name in STATISTICS if name in value]
        if len(named) > 1:
            raise ValueError(f"name one statistic for a limit, not {' and '.join(named)}")
        if not named:
            # The Opik form `{"used": …, "limit": …}` measures the whole episode.
            return {"statistic": "total", **value} if "used" in value else value
        rest = {key: item for key, item in value.items() if key != named[0]}
        return {"statistic": named[0], "used": value[named[0]], **rest}

    @model_serializer(mode="wrap")
    def _name_statistic(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        fields.pop("statistic", None)
        used = fields.pop("used", None)
        return {self.statistic: used, **fields}


class Budgets(Frozen):
    """The budgets of one episode."""

    max_turns: Budget | None = Field(default=None, description="turns of the agent")
    tool_calls: Budget | None = Field(default=None, description="tool calls")
    latency_ms: LatencyBudget | None = Field(default=None, description="latency of agent turns")
    token_usage: Budget | None = Field(default=None, description="tokens, input and output")
    cost_usd: Budget | None = Field(default=None, description="cost in US dollars")
    custom: dict[str, Budget] = Field(default_factory=dict, description="budgets of your own")

    @model_validator(mode="wrap")
    @classmethod
    def _name_nearest_key(cls, value: Any, handler: ModelWrapValidatorHandler[Budgets]) -> Budgets:
        """Say which known key an unknown one was probably meant to be."""
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    raise ValueError(unknown_key(str(key), tuple(cls.model_fields)))
        return handler(value)

    def named(self) -> Iterator[tuple[str, Budget]]:
        """Every budget that is set, with its name, in a fixed order; custom ones sorted."""
        for name in ("max_turns", "tool_calls", "latency_ms", "token_usage", "cost_usd"):
            budget = getattr(self, name)
            if budget is not None:
                yield name, budget
        yield from sorted(self.custom.items())


class SuiteBudgets(Frozen):
    """The budgets of the suite as a whole."""

    total_cost_usd: Budget | None = Field(default=None, description="cost in US dollars")
    total_tokens: Budget | None = Field(default=None, description="tokens, input and output")
    total_wall_time_s: Budget | None = Field(default=None, description="seconds of all sessions")


def unknown_key(key: str, known: tuple[str, ...]) -> str:
    """Return the sentence for an unknown key: the nearest known one, or all of them."""
    nearest = get_close_matches(key, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known keys: {', '.join(known)}"
    return f"unknown key {key!r}; {hint}"
