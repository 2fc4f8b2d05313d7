"""Parser of YAML with the line of every value: plain values only, typed as in YAML 1.2.

PyYAML reads YAML 1.1, where `yes`, `no` and `on` are booleans and `1:30` is a number: in a
script of messages they are texts. Aliases are refused, because a few lines of them can expand
to more values than fit into memory.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from ci_agent_eval.contract.located_value import (
    MAX_DEPTH,
    LocatedKey,
    LocatedProblem,
    LocatedValue,
    build_mapping,
    require_utf8_text,
)

_CORE = "tag:yaml.org,2002:"


class _Yaml12Loader(yaml.SafeLoader):
    """Composes nodes with the types of YAML 1.2's core schema; constructs no objects."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - required by PyYAML

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node. Raises FileProblem for an alias."""
        if self.check_event(yaml.AliasEvent):
            event: yaml.AliasEvent = self.peek_event()  # type: ignore[no-untyped-call]
            raise LocatedProblem(
                1 if event.start_mark is None else event.start_mark.line + 1,
                f"the alias *{event.anchor} is not read; write the value out",
            )
        return super().compose_node(parent, index)


# The core schema of YAML 1.2.2, section 10.3.2.
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"null|Null|NULL|~|", ("n", "N", "~", "")),
):
    _Yaml12Loader.add_implicit_resolver(
        _CORE + _tag, re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def parse_located_yaml(text: str) -> LocatedValue | None:
    """Parse YAML; None if it is empty. Raises FileProblem."""
    try:
        node = yaml.compose(text, Loader=_Yaml12Loader)
        return None if node is None else _convert_node(node, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise LocatedProblem(1 if mark is None else mark.line + 1, _format_error(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LocatedProblem(
            line, f"holds a character that YAML forbids ({error.reason})"
        ) from None
    except RecursionError:
        raise LocatedProblem(1, "is nested too deep; write it flat") from None
    except (yaml.YAMLError, ValueError, IndexError, OverflowError) as error:
        # PyYAML's scanner leaks Python's own errors for some broken escapes.
        raise LocatedProblem(1, f"is not YAML that can be read: {error}") from None


def _format_error(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return f"is not YAML: {', '.join(parts)}"


def _convert_node(node: yaml.Node, depth: int) -> LocatedValue:
    line = node.start_mark.line + 1
    if depth > MAX_DEPTH:
        raise LocatedProblem(line, "is nested too deep; write it flat")
    if isinstance(node, yaml.MappingNode):
        _refuse_tag(node, "map")
        pairs = ((_convert_key(key), _convert_node(value, depth + 1)) for key, value in node.value)
        return LocatedValue(build_mapping(pairs), line)
    if isinstance(node, yaml.SequenceNode):
        _refuse_tag(node, "seq")
        return LocatedValue(tuple(_convert_node(item, depth + 1) for item in node.value), line)
    return LocatedValue(_convert_scalar(node, line), line)


def _convert_key(node: yaml.Node) -> LocatedKey:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise LocatedProblem(line, "a key must be a text")
    return LocatedKey(require_utf8_text(node.value, line), line)


def _convert_scalar(node: yaml.Node, line: int) -> Any:
    _refuse_tag(node, "str", "null", "bool", "int", "float")
    kind, text = node.tag.removeprefix(_CORE), str(node.value)
    if kind == "str":
        return require_utf8_text(text, line)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    return _parse_number(kind, text, line)


def _parse_number(kind: str, text: str, line: int) -> int | float:
    try:
        if kind == "int":
            return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        raise LocatedProblem(line, f"{text[:40]!r} is not a number; put a text in quotes") from None
    if not math.isfinite(number):
        raise LocatedProblem(line, f"{text[:40]!r} is not finite; write a number")
    return number


def _refuse_tag(node: yaml.Node, *known: str) -> None:
    if node.tag.removeprefix(_CORE) not in known:
        raise LocatedProblem(
            node.start_mark.line + 1,
            f"the tag {node.tag!r} is not read; write plain values without `!`",
        )
