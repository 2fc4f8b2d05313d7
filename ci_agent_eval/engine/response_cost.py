"""The cost of a model's response, which is the same live, recorded and replayed."""

from __future__ import annotations

from decimal import Decimal

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.model_traffic.pricing import CallPrice


def compute_cost(response: ModelResponse) -> float | None:
    """Return the cost of a response in US dollars; None if price or usage is unknown."""
    usage = response.usage
    if usage.unmeasured_requests:
        return None
    if usage.cost is not None:
        return float(usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def set_cost(response: ModelResponse, price: CallPrice | None = None) -> None:
    """Set the cost if the provider has not reported it: to a price, or by PydanticAI.

    PydanticAI computes it later.
    """
    if response.usage.cost is None:
        cost_usd = compute_cost(response) if price is None else price.cost_usd
        response.usage.cost = None if cost_usd is None else Decimal(str(cost_usd))
