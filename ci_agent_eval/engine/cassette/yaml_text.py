"""Readable YAML of cassettes: multi-line texts as blocks, equal values as equal bytes.

The only user of PyYAML for cassettes.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.emitter import ScalarAnalysis

from ci_agent_eval.engine.cassette.answers import InlineMapping

_SPACE_BEFORE_BREAK = re.compile(r" (?:\n|\Z)")


class _CassetteDumper(yaml.SafeDumper):
    """Writes no aliases, and multi-line texts as blocks.

    PyYAML analyzes a text by character, which took 6 s for 10 MB. Here blocks are analyzed
    and written by line, with the same bytes.
    """

    event: Any
    open_ended: bool
    stream: Any

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Return True: repeated values are written out."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's signature
        """Indent the items of lists below their names."""
        super().increase_indent(flow, indentless=False)

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Return the styles that can hold the text."""
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
    # PyYAML falls back to quotes if a block cannot hold the text exactly, except for Unicode's
    # other line ends, which its reader takes for spaces.
    plain = text.replace("\n", "").isprintable()
    style = None if plain and "\n" not in text else "|" if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_inline(dumper: yaml.SafeDumper, value: InlineMapping) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


_CassetteDumper.add_representer(str, _represent_text)
_CassetteDumper.add_representer(InlineMapping, _represent_inline)
_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml if available, about ten times as fast."""


def render_cassette_yaml(value: Any) -> str:
    """Render a JSON value; keys stay in their order."""
    return yaml.dump(value, Dumper=_CassetteDumper, sort_keys=False, allow_unicode=True, width=100)


def parse_cassette_yaml(text: str) -> Any:
    """Parse YAML into plain values. Raises ValueError with the problem."""
    try:
        return yaml.load(text, Loader=_SafeLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
