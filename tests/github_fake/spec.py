"""GitHub's own API description as request and response checks, and as blanks for response bodies.

The cut ``openapi.json`` (renewed by ``scripts/renew_github_openapi.py``) is OpenAPI 3.0. Three
things differ from a plain reading of it, each for a stated reason:

* Objects are closed: a property the description does not name is an error. GitHub itself answers
  an unknown key in a check run with 422, and a misspelt key is the mistake we want to see.
* ``nullable`` adds null to an ``enum``: GitHub's replies do so (``conclusion`` of an open check
  run) although OpenAPI 3.0.3 wants null listed.
* ``format: uri`` is checked, which the validator's own format checker leaves out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Schema = dict[str, Any]

_SPEC = Path(__file__).with_name("openapi.json")
_JSON = "application/json"
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_BLANKS = {
    "date-time": "2026-01-01T00:00:00Z",
    "uri": "https://github.invalid/",
    "email": "nobody@github.invalid",
}


def _inline(node: Any, components: Mapping[str, Any]) -> Any:
    """Return ``node`` with references replaced by what they name, normalised as the module says."""
    if isinstance(node, list):
        return [_inline(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        _, _, section, name = node["$ref"].split("/")
        return _inline(components[section][name], components)
    # `oneOf` already decides; a discriminator would only repeat it by reference.
    copied = {k: _inline(v, components) for k, v in node.items() if k != "discriminator"}
    if copied.get("nullable") is True and isinstance(copied.get("enum"), list):
        copied["enum"] = [*copied["enum"], None]
    return copied


def _closed(schema: Schema) -> Schema:
    """Return ``schema`` refusing unnamed properties; branches of ``oneOf`` and kin stay as is."""
    closed = dict(schema)
    if "properties" in closed:
        closed["properties"] = {k: _closed(v) for k, v in closed["properties"].items()}
        if not closed.keys() & {"additionalProperties", "allOf", "oneOf"}:
            closed["additionalProperties"] = False
    if "items" in closed:
        closed["items"] = _closed(closed["items"])
    return closed


def _is_absolute_uri(value: object) -> bool:
    """Tell whether a string is an absolute address; other types are not this check's business."""
    if not isinstance(value, str):
        return True
    parts = urlsplit(value)
    return bool(parts.scheme and parts.netloc)


@cache
def _validator_class() -> tuple[Any, Any]:
    """Return the OpenAPI 3.0 validator and its formats; late, for it costs 0.2 s to import."""
    from jsonschema import FormatChecker
    from openapi_schema_validator import OAS30Validator

    formats = FormatChecker(())
    formats.checkers = {**OAS30Validator.FORMAT_CHECKER.checkers, "uri": (_is_absolute_uri, ())}
    return OAS30Validator, formats


def _compiled(schema: Schema) -> Any:
    validator, formats = _validator_class()
    return validator(_closed(schema), format_checker=formats)


def _errors(validator: Any, value: Any, where: str) -> Iterator[str]:
    """Yield one sentence for each way in which ``value`` breaks the schema."""
    for error in validator.iter_errors(value):
        path = "".join(f"[{step!r}]" for step in error.absolute_path)
        yield f"{where}{path}: {_shortened(error.message)}"


def _shortened(message: str) -> str:
    """Return the message without the middle of a long value: its end says what is wrong."""
    return message if len(message) <= 300 else f"{message[:60]} ... {message[-200:]}"


def _typed(text: str, schema: Schema) -> Any:
    """Return a path or query value as its schema's type; a value that is not one stays text."""
    if schema.get("type") == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    return text


class Operation:
    """One method on one path of the description; validators are compiled at their first use."""

    def __init__(self, method: str, path: str, description: Mapping[str, Any]) -> None:
        self.method = method.upper()
        self.path = path
        self._description = description
        self._replies: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """The operation's name as ``METHOD /path/{template}``."""
        return f"{self.method} {self.path}"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The path as a pattern whose groups carry the parameters' names."""
        return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(self.path)))

    @cached_property
    def _parameters(self) -> dict[tuple[str, str], tuple[Schema, Any, bool]]:
        return {
            (p["in"], p["name"]): (p["schema"], _compiled(p["schema"]), p.get("required", False))
            for p in self._description.get("parameters", ())
        }

    @cached_property
    def _body(self) -> Any:
        content = self._description.get("requestBody", {}).get("content", {})
        return _compiled(content[_JSON]["schema"]) if content else None

    def request_errors(
        self, path: Mapping[str, str], query: Mapping[str, str], body: Any
    ) -> list[str]:
        """Return what is wrong with a request: path and query as text, ``body`` as parsed JSON."""
        found = [
            *self._parameter_errors("path", path),
            *self._parameter_errors("query", query),
        ]
        if self._body is not None:
            found += _errors(self._body, body, "body")
        elif body is not None:
            found.append("body: this operation takes none")
        return found

    def _parameter_errors(self, place: str, values: Mapping[str, str]) -> Iterator[str]:
        for name, text in values.items():
            known = self._parameters.get((place, name))
            if known is None:
                yield f"{place}[{name!r}]: the description has no such parameter"
            else:
                yield from _errors(known[1], _typed(text, known[0]), f"{place}[{name!r}]")
        for (where, name), (_, _, required) in self._parameters.items():
            if where == place and required and name not in values:
                yield f"{place}[{name!r}]: is required"

    def reply_errors(self, status: int, body: Any) -> list[str]:
        """Return what is wrong with a reply of ours.

        The description lists few error statuses for each operation; the others are held against
        its general error shapes. A success status must be listed.
        """
        key = str(status)
        if key not in self._replies:
            self._replies[key] = self._reply_validator(status)
        if self._replies[key] is None:
            return [f"reply {status}: the description has no such status for {self.key}"]
        return list(_errors(self._replies[key], body, f"reply {status}"))

    def _reply_validator(self, status: int) -> Any:
        described = self._description["responses"].get(str(status))
        if described is not None and "content" not in described:
            return _compiled({"nullable": True, "enum": [None]})
        if described is not None:
            return _compiled(described["content"][_JSON]["schema"])
        if status < 400:
            return None
        return _compiled(schema("validation-error" if status == 422 else "basic-error"))


@cache
def _document() -> dict[str, Any]:
    document = json.loads(_SPEC.read_text(encoding="utf-8"))
    return {
        "paths": _inline(document["paths"], document["components"]),
        "schemas": _inline(document["components"]["schemas"], document["components"]),
    }


@cache
def operations() -> tuple[Operation, ...]:
    """Return every operation of the cut."""
    return tuple(
        Operation(method, path, description)
        for path, methods in _document()["paths"].items()
        for method, description in methods.items()
    )


def find(method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
    """Return the operation that serves ``path`` and the path's parameters, or None."""
    for operation in operations():
        match = operation.pattern.fullmatch(path) if operation.method == method else None
        if match is not None:
            return operation, {k: unquote(v) for k, v in match.groupdict().items()}
    return None


def schema(name: str) -> Schema:
    """Return a named schema of the cut, references replaced; KeyError if there is none."""
    found: Schema = _document()["schemas"][name]
    return found


def _blank(node: Schema) -> Any:
    """Return the smallest value that ``node`` allows: required properties only, null if it may."""
    if node.get("nullable"):
        return None
    if "enum" in node:
        return node["enum"][0]
    for branches in ("oneOf", "anyOf"):
        if branches in node:
            return _blank(node[branches][0])
    kind = node.get("type", "object")
    if kind == "object":
        properties = node.get("properties", {})
        return {name: _blank(properties[name]) for name in node.get("required", ())}
    if kind == "string":
        return _BLANKS.get(node.get("format", ""), "")
    return {"array": [], "integer": 0, "number": 0, "boolean": False}[kind]


@cache
def _blank_of(name: str) -> Any:
    return _blank({**schema(name), "nullable": False})


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def filled(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body of schema ``name``: ``values`` laid over blanks for what else it requires."""
    body: dict[str, Any] = deepcopy(_blank_of(name))
    _merge(body, values)
    return body
