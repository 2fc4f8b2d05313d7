"""Cost of a model call by genai-prices; costs by different price tables are not comparable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ci_agent_eval.model_traffic.messages import FormatName, RequestHead
from ci_agent_eval.model_traffic.recorder import ModelCall

if TYPE_CHECKING:
    from genai_prices import Usage
    from genai_prices.types import Provider


@dataclass(frozen=True, slots=True)
class CallPrice:
    """The price of one call."""

    cost_usd: float
    model: str
    """The model that the price belongs to, as the answer or the request names it."""
    is_vendor_price: bool
    """Whether the address was unknown, so that the price is that of the format's own vendor."""


@dataclass(frozen=True, slots=True)
class _Vendor:
    """The vendor of a format, and the names of the format's usage in genai-prices."""

    provider_id: str
    own_flavor: str
    """Its name at the vendor."""
    flavor: str | None = None
    """Its name at other providers; their `default` is another format."""


_VENDORS: Mapping[FormatName, _Vendor] = {
    "openai-chat": _Vendor("openai", "chat", "chat"),
    "openai-responses": _Vendor("openai", "responses", "responses"),
    "anthropic-messages": _Vendor("anthropic", "default", "anthropic"),
    "gemini": _Vendor("google", "default"),
    "bedrock-converse": _Vendor("aws", "default"),
}


@cache
def get_price_table() -> str:
    """Return the name and version of the price table."""
    return f"genai-prices {version('genai-prices')}"


def price_call(call: ModelCall, head: RequestHead | None = None) -> CallPrice | None:
    """Return the price of a call; None if its usage, its model or its price is unknown.

    With `head` the rest of the request is not read.
    """
    answer, request = call.answer, head or call.request
    if answer is None or answer.usage is None or answer.tokens is None:
        return None
    models = (answer.model, None if request is None else request.model)
    return price_usage(call.format.name, tuple(filter(None, models)), answer.usage, call.url)


def price_usage(
    name: FormatName, models: tuple[str, ...], usage: Mapping[str, object], url: str
) -> CallPrice | None:
    """Price the usage of an answer by the first model that has a price at the address."""
    provider = _find_provider(url)
    priced_by = provider or _get_provider(_VENDORS[name].provider_id)
    counts = _count(name, usage, priced_by)
    if counts is None:
        return None
    prices = ((model, _price(counts, model, priced_by)) for model in models)
    found = next(((model, cost) for model, cost in prices if cost is not None), None)
    return None if found is None else CallPrice(found[1], found[0], provider is None)


@lru_cache(maxsize=64)
def _find_provider(url: str) -> Provider | None:
    """Return the provider at an address; None for a loopback or unknown address."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - slow

    try:
        parts = urlsplit(url)
        address = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        return get_snapshot().find_provider(None, None, address)
    except (LookupError, ValueError):
        return None


def _get_provider(provider_id: str) -> Provider:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - slow

    return get_snapshot().find_provider(None, provider_id, None)


def _count(name: FormatName, usage: Mapping[str, object], provider: Provider) -> Usage | None:
    """Count the priced units: tokens by kind, and searches."""
    body = {"usage": usage, "usageMetadata": usage}
    for reader, flavor in _list_readers(name, provider):
        try:
            return reader.extract_usage(body, api_flavor=flavor)[1]
        except (LookupError, ValueError, TypeError):
            continue
    return None


def _list_readers(name: FormatName, provider: Provider) -> Iterator[tuple[Provider, str]]:
    """Yield providers and flavors: first the call's own, which may read more of the usage."""
    vendor = _VENDORS[name]
    known = {extractor.api_flavor for extractor in provider.extractors or ()}
    if vendor.flavor in known:
        yield provider, str(vendor.flavor)
    yield _get_provider(vendor.provider_id), vendor.own_flavor


def _price(usage: Usage, model: str, provider: Provider) -> float | None:
    from genai_prices import calc_price  # noqa: PLC0415 - slow

    try:
        return float(calc_price(usage, model, provider_id=provider.id).total_price)
    except (LookupError, ValueError, AssertionError):
        return None
