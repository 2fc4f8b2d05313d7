"""Redaction of contract values: every free text, but no text from a fixed set of words."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from ci_agent_eval.contract.base import FrozenModel
from ci_agent_eval.redaction import Redactor, make_distinct_names, redact_value, remove_secret_pairs

Model = TypeVar("Model", bound=FrozenModel)


def redact_model(model: Model, redactor: Redactor) -> Model:
    """Return the value with every nested text redacted, including keys of mappings.

    A value without a secret is returned unchanged: every episode is checked, few hold a secret.
    """
    updates: dict[str, Any] = {}
    for name in _list_text_fields(type(model)):
        value = getattr(model, name)
        clean = _redact_value(value, redactor)
        if clean is not value:
            updates[name] = clean
    copied = model.model_copy(update=updates) if updates else model
    return _redact_extra_fields(copied, redactor) if model.model_extra else copied


def _redact_extra_fields(model: Model, redactor: Redactor) -> Model:
    """Return the value with the fields redacted that the contract does not define."""
    extra = model.model_extra or {}
    clean = _redact_mapping(extra, redactor)
    if clean is extra:
        return model
    copied = model.model_copy(update=clean)
    for key in extra.keys() - clean.keys():
        (copied.model_extra or {}).pop(key)  # `model_copy` adds keys but removes none
    return copied


def _redact_value(value: Any, redactor: Redactor) -> Any:
    """Return the redacted value; the same object if it has no secret."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        clean = remove_secret_pairs(redactor.text(value))
        return value if clean == value else clean
    if isinstance(value, FrozenModel):
        return redact_model(value, redactor)
    if isinstance(value, tuple | list):
        items = [_redact_value(item, redactor) for item in value]
        if all(item is own for item, own in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    return _redact_mapping(value, redactor) if isinstance(value, dict) else value


def _redact_mapping(value: dict[Any, Any], redactor: Redactor) -> dict[Any, Any]:
    names = make_distinct_names(value, redactor.text) if value else {}
    items = {k: _redact_value(redact_value(k, item), redactor) for k, item in value.items()}
    if all(names[key] == key and item is value[key] for key, item in items.items()):
        return value
    return {names[key]: item for key, item in items.items()}


@cache
def _list_text_fields(kind: type[FrozenModel]) -> tuple[str, ...]:
    """Return the names of the fields that may hold free text."""
    fields = kind.model_fields.items()
    return tuple(name for name, field in fields if not _is_closed(field.annotation))


def _is_closed(annotation: Any) -> bool:
    """Return whether a field holds figures or one of a fixed set of words: `failed`, `p95`."""
    if get_origin(annotation) is Literal or annotation in _FIGURES:
        return True
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _is_closed(parts[0])
    return bool(parts) and all(part is type(None) or _is_closed(part) for part in parts)


_FIGURES = (bool, int, float)
