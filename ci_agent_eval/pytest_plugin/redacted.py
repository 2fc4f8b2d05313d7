"""Contract values without secrets: every free text in them, and none of their fixed words."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, get_args, get_origin

from ci_agent_eval.contract.base import Frozen
from ci_agent_eval.redact import Redactor, distinct_names

Model = TypeVar("Model", bound=Frozen)


def redacted(model: Model, redactor: Redactor) -> Model:
    """Return the value with every text in it redacted, however deep; keys of mappings too."""
    fields = type(model).model_fields
    updates = {
        name: _redacted(getattr(model, name), redactor)
        for name, field in fields.items()
        if not _is_closed(field.annotation)
    }
    updates |= redactor.value(model.model_extra or {})
    return model.model_copy(update=updates)


def _redacted(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, Frozen):
        return redacted(value, redactor)
    if isinstance(value, tuple):
        return tuple(_redacted(item, redactor) for item in value)
    if isinstance(value, list):
        return [_redacted(item, redactor) for item in value]
    if isinstance(value, dict):
        names = distinct_names(value, redactor.text)
        return {names[key]: _redacted(item, redactor) for key, item in value.items()}
    return redactor.text(value) if isinstance(value, str) else value


def _is_closed(annotation: Any) -> bool:
    """Say whether a field holds one of a fixed set of words: `required`, `failed`, `p95`."""
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return True
    return bool(parts) and all(part is type(None) or _is_closed(part) for part in parts)
