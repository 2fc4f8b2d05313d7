"""YAML with the line of every value. The only home of PyYAML in this room."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.steering.located import Located, Wrong

try:
    import yaml
except ModuleNotFoundError as error:  # pragma: no cover - the tests' environment has it
    user = "a configuration file of steering"
    raise missing_package_error(user, "PyYAML", "steering") from error

_MAX_DEPTH = 20


class _Loader(yaml.SafeLoader):
    """Refuses aliases: a few lines of them stand for more values than a machine holds."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node that is no alias."""
        if self.check_event(yaml.AliasEvent):
            event: yaml.AliasEvent = self.peek_event()  # type: ignore[no-untyped-call]
            line = 1 if event.start_mark is None else event.start_mark.line + 1
            raise Wrong(line, f"the alias *{event.anchor} is not read; write the value out")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Located:
    """Parse one YAML document; an empty one is an empty mapping. Raises Wrong."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return Located({}, 1) if node is None else _located(loader, node, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise Wrong(1 if mark is None else mark.line + 1, f"is no YAML: {said}") from None
    except RecursionError:
        raise Wrong(1, "is nested too deep; write it flat") from None
    except (yaml.YAMLError, ValueError, IndexError, OverflowError) as error:
        # PyYAML's scanner leaks Python's own errors for some broken escapes.
        raise Wrong(1, f"is no YAML that can be read: {one_line(str(error))}") from None


def _located(loader: _Loader, node: yaml.Node, depth: int) -> Located:
    line = node.start_mark.line + 1
    if depth > _MAX_DEPTH:
        raise Wrong(line, "is nested too deep; write it flat")
    if isinstance(node, yaml.MappingNode):
        return Located(_mapping(loader, node, depth), line)
    if isinstance(node, yaml.SequenceNode):
        return Located(tuple(_located(loader, item, depth + 1) for item in node.value), line)
    return Located(_scalar(loader, node), line)


def _mapping(loader: _Loader, node: yaml.MappingNode, depth: int) -> dict[str, Located]:
    fields: dict[str, Located] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise Wrong(line, "a key must be a text")
        if key.value in fields:
            raise Wrong(line, f"the key {key.value!r} stands here twice; keep one")
        # A mapping's own line is that of its first key: its key's line is where people look.
        fields[key.value] = Located(_located(loader, value, depth + 1).value, line)
    return fields


def _scalar(loader: _Loader, node: yaml.Node) -> Any:
    return loader.construct_object(node)
