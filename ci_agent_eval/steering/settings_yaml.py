"""Parser of YAML with the line of each value; the only module of steering with PyYAML."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.steering.located_value import InvalidSetting, LocatedValue

try:
    import yaml
except ModuleNotFoundError as error:  # pragma: no cover - the tests' environment has it
    user = "a configuration file of steering"
    raise missing_package_error(user, "PyYAML", "steering") from error

_MAX_DEPTH = 20


class _SettingsLoader(yaml.SafeLoader):
    """A loader that refuses aliases, which can expand to more values than fit in memory."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node; raise InvalidSetting for an alias."""
        if self.check_event(yaml.AliasEvent):
            event: yaml.AliasEvent = self.peek_event()  # type: ignore[no-untyped-call]
            line = 1 if event.start_mark is None else event.start_mark.line + 1
            raise InvalidSetting(
                line, f"the alias *{event.anchor} is not read; write the value out"
            )
        return super().compose_node(parent, index)


def parse_settings_yaml(text: str) -> LocatedValue:
    """Parse one YAML document; an empty one is an empty mapping. Raises InvalidSetting."""
    try:
        loader = _SettingsLoader(text)
        node = loader.get_single_node()
        return LocatedValue({}, 1) if node is None else _locate_value(loader, node, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise InvalidSetting(
            1 if mark is None else mark.line + 1, f"is no YAML: {problem}"
        ) from None
    except RecursionError:
        raise InvalidSetting(1, "is nested too deep; write it flat") from None
    except (yaml.YAMLError, ValueError, IndexError, OverflowError) as error:
        # PyYAML's scanner raises Python's own errors for some invalid escapes.
        raise InvalidSetting(1, f"is no YAML that can be read: {one_line(str(error))}") from None


def _locate_value(loader: _SettingsLoader, node: yaml.Node, depth: int) -> LocatedValue:
    line = node.start_mark.line + 1
    if depth > _MAX_DEPTH:
        raise InvalidSetting(line, "is nested too deep; write it flat")
    if isinstance(node, yaml.MappingNode):
        return LocatedValue(_locate_mapping(loader, node, depth), line)
    if isinstance(node, yaml.SequenceNode):
        return LocatedValue(
            tuple(_locate_value(loader, item, depth + 1) for item in node.value), line
        )
    return LocatedValue(_construct_scalar(loader, node), line)


def _locate_mapping(
    loader: _SettingsLoader, node: yaml.MappingNode, depth: int
) -> dict[str, LocatedValue]:
    fields: dict[str, LocatedValue] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise InvalidSetting(line, "a key must be a text")
        if key.value in fields:
            raise InvalidSetting(line, f"the key {key.value!r} stands here twice; keep one")
        # Use the key's line: PyYAML's line of a mapping is the line of its first key.
        fields[key.value] = LocatedValue(_locate_value(loader, value, depth + 1).value, line)
    return fields


def _construct_scalar(loader: _SettingsLoader, node: yaml.Node) -> Any:
    return loader.construct_object(node)
