"""Validation against a JSON Schema; the only module that imports jsonschema.

References are resolved in the schema itself and in the drafts' metaschemas. Nothing is fetched:
any other reference is refused when the check is created.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ci_agent_eval.errors import InputError, missing_package_error

if TYPE_CHECKING:
    from referencing import Resource
    from referencing._core import Resolver
    from referencing.jsonschema import Schema, SchemaRegistry

_REFERENCES = ("$ref", "$dynamicRef")


def build_schema_validator(
    owner: str, schema: Mapping[str, Any] | bool
) -> Callable[[Any], list[str]]:
    """Build a validator, which lists the problems of a JSON value, each with its path.

    The draft is 2020-12 unless `$schema` names another. Raises InputError for an invalid schema,
    and if jsonschema is not installed.
    """
    try:
        from jsonschema import validators  # noqa: PLC0415 - imported when a check needs it
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        user = f"{owner}: a JSON Schema"
        raise missing_package_error(user, str(error.name), "checks") from error
    own: Any = schema if isinstance(schema, bool) else copy.deepcopy(dict(schema))
    draft: Any = validators.validator_for(own, default=validators.Draft202012Validator)
    try:
        draft.check_schema(own)
    except SchemaError as error:
        raise InputError(f"{owner}: the schema is none: {_describe_error(error)}") from error
    validator = draft(own, registry=_build_registry(owner, own, draft.META_SCHEMA["$schema"]))

    return lambda value: sorted(map(_describe_error, validator.iter_errors(value)))


def _describe_error(error: Any) -> str:
    """Return an error's path and message."""
    return f"{error.json_path}: {error.message}"


def _build_registry(owner: str, schema: Schema, dialect: str) -> SchemaRegistry:
    """Build the registry that resolves references. Raises InputError for an unresolvable one."""
    from jsonschema_specifications import (  # type: ignore[import-untyped]  # noqa: PLC0415 - as above
        REGISTRY,
    )
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - comes with jsonschema
    from referencing.jsonschema import specification_with  # noqa: PLC0415 - as above

    root = specification_with(dialect).create_resource(schema)
    known: SchemaRegistry = REGISTRY
    try:
        _look_up_references(root, known.resolver_with_root(root))
    except Unresolvable as error:
        raise InputError(
            f"{owner}: the schema refers to {error.ref!r}, which is not in it; "
            "put it under $defs, nothing is fetched"
        ) from error
    return known


def _look_up_references(part: Resource[Schema], resolver: Resolver[Schema]) -> None:
    """Look up every reference below a part of a schema; raises Unresolvable."""
    if isinstance(part.contents, Mapping):
        for keyword in _REFERENCES:
            if keyword in part.contents:
                resolver.lookup(part.contents[keyword])
    for inner in part.subresources():
        _look_up_references(inner, resolver.in_subresource(inner))
