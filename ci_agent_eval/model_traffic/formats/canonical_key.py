"""Canonical keys of requests for replay: equal requests give equal texts.

Ids are renamed only where the format puts them, because a tool's arguments may have keys such as
`id` too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.protocol import UnreadableTrafficError
from ci_agent_eval.model_traffic.messages import FormatName

_BLOB = "<provider data>"


@dataclass(frozen=True, slots=True)
class KeyRules:
    """The varying parts of a format's requests; `*` in a path is any item of a list."""

    dropped: tuple[str, ...]
    """Paths of what does not change the answer."""
    ids: tuple[str, ...]
    """Paths of ids, which are numbered by first appearance."""
    blobs: tuple[str, ...]
    """Paths of encrypted or signed data, which are replaced by a placeholder."""


def build_canonical_key(name: FormatName, model: str | None, body: Json, rules: KeyRules) -> str:
    """Return the canonical JSON of a request; it changes `body`."""
    request = {key: value for key, value in body.items() if key != "model"}
    for path in rules.dropped:
        *parents, last = path.split(".")
        for parent in _find_objects(request, parents):
            parent.pop(last, None)
    numbers: dict[str, str] = {}
    for path in rules.ids:
        _replace(request, path, lambda old: numbers.setdefault(old, f"id-{len(numbers) + 1}"))
    for path in rules.blobs:
        _replace(request, path, lambda _: _BLOB)
    key = {"format": name, "model": model, "request": request}
    try:
        return json.dumps(key, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise UnreadableTrafficError("the body is nested too deeply") from None


def _replace(body: Json, path: str, get_new: Callable[[str], str]) -> None:
    """Replace the texts at a path."""
    *parents, key = path.split(".")
    for parent in _find_objects(body, parents):
        old = parent.get(key)
        if isinstance(old, str):
            parent[key] = get_new(old)


def _find_objects(value: object, path: list[str]) -> Iterator[Json]:
    if not path:
        if isinstance(value, dict):
            yield value
        return
    first, *rest = path
    if first == "*":
        for item in value if isinstance(value, list) else ():
            yield from _find_objects(item, rest)
    elif isinstance(value, Mapping):
        yield from _find_objects(value.get(first), rest)
