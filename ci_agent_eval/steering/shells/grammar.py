"""The door to tree-sitter: text in, the root of its syntax tree out."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tree_sitter import Language, Node, Parser


@cache
def _language(module: str) -> Language:
    return Language(import_module(module).language())


def parse_tree(source: bytes, module: str) -> Node:
    """Parse source with the grammar of that module.

    A parser holds state and is made anew each time: that costs microseconds, and threads share
    nothing.
    """
    return Parser(_language(module)).parse(source).root_node
