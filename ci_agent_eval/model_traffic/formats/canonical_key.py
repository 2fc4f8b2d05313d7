"""Canonical keys of requests for replay: equal requests give equal texts.

Ids are renamed only where the format puts them, because a tool's arguments may have keys such as
`id` too.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from ci_agent_eval.model_traffic.formats.json_values import Json, UnreadableTrafficError
from ci_agent_eval.model_traffic.messages import FormatName

_BLOB = "<provider data>"


@dataclass(frozen=True, slots=True)
class KeyRules:
    """The varying parts of a format's requests; `*` in a path is any item of a list.

    Paths are separated by spaces.
    """

    dropped: str
    """What does not change the answer."""
    ids: str
    """Ids, which are numbered by first appearance."""
    blobs: str
    """Encrypted or signed data, which are replaced by a placeholder."""
    results: tuple[str, ...]
    """Path of the lists with tool results, of the id in a result, and the key that a result has."""


def build_canonical_key(name: FormatName, model: str | None, body: Json, rules: KeyRules) -> str:
    """Return the canonical JSON of a request; it changes `body`."""
    request = {key: value for key, value in body.items() if key != "model"}
    for path in rules.dropped.split():
        *parents, last = path.split(".")
        for parent in _find_objects(request, parents):
            parent.pop(last, None)
    numbers: dict[str, str] = {}
    _sort_results(request, rules.results)  # results of calls that an earlier request has
    for path in rules.ids.split():
        _replace(request, path, lambda old: numbers.setdefault(old, f"id-{len(numbers) + 1}"))
    _sort_results(request, rules.results)
    for path in rules.blobs.split():
        _replace(request, path, lambda _: _BLOB)
    key = {"format": name, "model": model, "request": request}
    try:
        return json.dumps(key, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise UnreadableTrafficError("the body is nested too deeply") from None


def _sort_results(body: Json, paths: tuple[str, ...]) -> None:
    """Sort successive results of tool calls by their ids: parallel tools end in any order."""
    *parents, last = paths[0].split(".")
    get_key = partial(_get_sort_key, paths=paths)  # equal for all other items
    for parent in _find_objects(body, parents):
        if isinstance(items := parent.get(last), list):
            groups = itertools.groupby(items, lambda item: bool(_get_id(item, paths)))
            parent[last] = [item for _, group in groups for item in sorted(group, key=get_key)]


def _get_id(item: object, paths: tuple[str, ...]) -> str:
    """Return the id of the call whose result an item is; empty for other items."""
    _, id_path, *marks = paths
    *parents, key = id_path.split(".")
    if not isinstance(item, dict) or any(mark not in item for mark in marks):
        return ""
    found = [one.get(key) for one in _find_objects(item, parents)]
    return next((one for one in found if isinstance(one, str)), "")


def _get_sort_key(item: object, *, paths: tuple[str, ...]) -> tuple[int, str]:
    """Return a key by which `id-2` is before `id-10`."""
    found = _get_id(item, paths)
    return len(found), found


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
