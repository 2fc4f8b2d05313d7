"""Budgets: limits of an episode or a suite, and the amounts used.

Each budget is written as a bare limit (`"max_turns": 5`) or as an object
(`{"used": 3, "limit": 4, "hard": false}`). A latency budget has the statistic's name
instead of `used`: `{"p95": 1200, "limit": 2000}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ci_agent_eval.contract.base import Amount, FrozenModel, KnownKeysModel
from ci_agent_eval.contract.budget_kinds import (
    BUDGET_KINDS,
    SUITE_BUDGET_KINDS,
    BudgetKind,
    SuiteBudgetKind,
)

Statistic = Literal["p50", "p90", "p95", "p99", "max", "mean", "total"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
DEFAULT_STATISTIC: Statistic = "p95"
PERCENTILES: Mapping[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


class Budget(FrozenModel):
    """A limit, the amount used (None: not measured), and whether it is hard."""

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

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the bare number to the schema of the object."""
        full = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"type": "number", "minimum": 0}, *cls._object_forms(full)]}

    @classmethod
    def _object_forms(cls, full: JsonSchemaValue) -> list[JsonSchemaValue]:
        return [full]


class LatencyBudget(Budget):
    """A limit in milliseconds on one statistic of the agent's turn latencies."""

    unit: str | None = "ms"
    statistic: Statistic = DEFAULT_STATISTIC
    only_if_significant: bool = Field(
        default=False,
        description="exceeded only if so many turns are above the limit that a percentile below "
        "it does not explain them",
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_named_statistic(cls, value: Any) -> Any:
        """Convert `{"p95": 1200, "limit": 2000}` to the model's fields."""
        if isinstance(value, Budget) and not isinstance(value, LatencyBudget):
            value = value.model_dump(exclude_unset=True)
        if not isinstance(value, Mapping):
            return value
        named = [name for name in STATISTICS if name in value]
        if len(named) > 1:
            raise ValueError(f"name one statistic for a limit, not {' and '.join(named)}")
        if not named:
            # The Opik form `{"used": …, "limit": …}` measures the whole episode.
            return {"statistic": "total", **value} if "used" in value else value
        others = {key: item for key, item in value.items() if key != named[0]}
        return {"statistic": named[0], "used": value[named[0]], **others}

    @model_validator(mode="after")
    def _require_percentile(self) -> Self:
        if self.only_if_significant and self.statistic not in PERCENTILES:
            known = ", ".join(PERCENTILES)
            raise ValueError(f"only_if_significant is for a percentile ({known})")
        return self

    @classmethod
    def _object_forms(cls, full: JsonSchemaValue) -> list[JsonSchemaValue]:
        """Return the schema with `used`, and one schema for each named statistic."""
        figure = full["properties"]["used"]
        others = {k: v for k, v in full["properties"].items() if k not in ("used", "statistic")}
        named = [{**full, "properties": {name: figure, **others}} for name in STATISTICS]
        return [full, *named]

    @model_serializer(mode="wrap")
    def _name_statistic(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        fields.pop("statistic", None)
        used = fields.pop("used", None)
        return {self.statistic: used, **fields}


def get_budget_class(name: str) -> type[Budget]:
    """Return the model that validates a budget, `Budget` for a custom name."""
    return _CLASSES.get(name, Budget)


_CLASSES = {kind.name: LatencyBudget if kind.samples else Budget for kind in BUDGET_KINDS}


def _build_budget_model(kinds: Iterable[BudgetKind | SuiteBudgetKind]) -> type[KnownKeysModel]:
    """Create a model with a field for each kind in the table."""
    fields: dict[str, Any] = {
        kind.name: (
            get_budget_class(kind.name) | None,
            Field(default=None, description=kind.description),
        )
        for kind in kinds
    }
    return create_model("BudgetFields", __base__=KnownKeysModel, **fields)


if TYPE_CHECKING:
    # Type checkers cannot read the table.
    class _EpisodeKinds(KnownKeysModel):
        max_turns: Budget | None = None
        tool_calls: Budget | None = None
        latency_ms: LatencyBudget | None = None
        token_usage: Budget | None = None
        cost_usd: Budget | None = None

    class _SuiteKinds(KnownKeysModel):
        total_cost_usd: Budget | None = None
        total_tokens: Budget | None = None
        total_wall_time_s: Budget | None = None
else:
    _EpisodeKinds = _build_budget_model(BUDGET_KINDS)
    _SuiteKinds = _build_budget_model(SUITE_BUDGET_KINDS)


class Budgets(_EpisodeKinds):
    """The budgets of one episode."""

    custom: dict[str, Budget] = Field(default_factory=dict, description="budgets of your own")

    def iter_by_kind(self) -> Iterator[tuple[BudgetKind, Budget]]:
        """Yield each budget that is set, except custom ones, in the order of the kinds."""
        for kind in BUDGET_KINDS:
            budget: Budget | None = getattr(self, kind.name)
            if budget is not None:
                yield kind, budget

    def iter_named(self) -> Iterator[tuple[str, Budget]]:
        """Yield each budget that is set with its name; custom budgets last, sorted."""
        yield from ((kind.name, budget) for kind, budget in self.iter_by_kind())
        yield from sorted(self.custom.items())


class SuiteBudgets(_SuiteKinds):
    """The budgets of the whole suite."""

    def iter_named(self) -> Iterator[tuple[SuiteBudgetKind, Budget]]:
        """Yield each budget that is set, in the order of the kinds."""
        for kind in SUITE_BUDGET_KINDS:
            budget: Budget | None = getattr(self, kind.name)
            if budget is not None:
                yield kind, budget
