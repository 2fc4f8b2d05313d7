"""YAML that people read: texts of many lines as they are, the same value always the same bytes.

The only home of PyYAML for cassettes.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.emitter import ScalarAnalysis

_SPACE_BEFORE_BREAK = re.compile(r" (?:\n|\Z)")


class _CassetteDumper(yaml.SafeDumper):
    """Writes no aliases, and texts of many lines as blocks.

    PyYAML looks at a text character by character, which took 6 s for 10 MB. Blocks are
    analyzed and written by the line here, to the same bytes.
    """

    event: Any
    open_ended: bool
    stream: Any

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write every value out where it stands."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's signature
        """Indent the items of lists below their names."""
        super().increase_indent(flow, indentless=False)

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Return which styles can hold the text."""
        if self.event.style != "|" or _SPACE_BEFORE_BREAK.search(scalar):
            return super().analyze_scalar(scalar)
        # Empty, multiline, then plain in a flow, plain in a block, single and double quotes, block.
        return ScalarAnalysis(scalar, False, True, False, False, False, True, True)

    def write_literal(self, text: str) -> None:
        """Write the text as a block."""
        hints = self.determine_block_hints(text)
        self.write_indicator("|" + hints, True)
        self.open_ended = self.open_ended or hints.endswith("+")
        self.write_line_break()
        for line in text.removesuffix("\n").split("\n"):
            if line:
                self.write_indent()
                self.stream.write(line)
            self.write_line_break()


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML itself falls back to quotes where a block could not hold the text exactly, but
    # for Unicode's other line ends, which its own reader takes for spaces.
    plain = text.replace("\n", "").isprintable()
    style = None if plain and "\n" not in text else "|" if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_CassetteDumper.add_representer(str, _represent_text)
_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it: about ten times as fast."""


def render_cassette_yaml(value: Any) -> str:
    """Render a JSON value; keys stay in their order."""
    return yaml.dump(value, Dumper=_CassetteDumper, sort_keys=False, allow_unicode=True, width=100)


def parse_cassette_yaml(text: str) -> Any:
    """Parse YAML into plain values. Raises ValueError, which says what is wrong."""
    try:
        return yaml.load(text, Loader=_SafeLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(str(error) or type(error).__name__) from error
