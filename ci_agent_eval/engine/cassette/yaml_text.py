"""YAML that people read: texts of many lines as they are, the same value always the same bytes.

The only home of PyYAML for cassettes.
"""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and texts of many lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write every value out where it stands."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's signature
        """Indent the items of lists below their names."""
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML itself falls back to quotes where a block could not hold the text exactly, but
    # for Unicode's other line ends, which its own reader takes for spaces.
    plain = text.replace("\n", "").isprintable()
    style = None if plain and "\n" not in text else "|" if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it: about ten times as fast."""


def render_yaml(value: Any) -> str:
    """Render a JSON value; keys stay in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def parse_yaml(text: str) -> Any:
    """Parse YAML into plain values. Raises ValueError, which says what is wrong."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(str(error) or type(error).__name__) from error
