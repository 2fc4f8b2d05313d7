"""Expansion of bash words: from a node of the syntax tree to its expanded words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, product

from tree_sitter import Node

from ci_agent_eval.steering.policy.words import ShellScope, Word
from ci_agent_eval.steering.shells.grammar import decode_from_grammar

OutputPredictor = Callable[[Node], str | None]
"""Returns the output of a substitution's command; None if it is not predictable."""

_MAX_WORDS = 200
_MAX_DEPTH = 40
_UNKNOWN_TEXT = "{…}"
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\\n])')
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|.)", re.DOTALL)
_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b"}
_BRACES = re.compile(r"^(.*?)\{([^{}]*,[^{}]*)\}(.*)$", re.DOTALL)


class WordExpander:
    """Expands words in a scope, and collects the substitutions in them, which also run."""

    def __init__(self, scope: ShellScope, predict_output: OutputPredictor) -> None:
        self.scope = scope
        self.predict_output = predict_output
        self.substitutions: list[Node] = []
        self.depth = 0

    def expand(self, node: Node, *, is_quoted: bool = False) -> list[Word]:
        """Return the expanded words of a node: none, one, or many; quoted values are not split."""
        self.scope.limits.steps -= 1
        if self.depth > _MAX_DEPTH or self.scope.limits.steps < 0:
            return [Word(_UNKNOWN_TEXT, known=False)]
        self.depth += 1
        words = self._expand_node(node, is_quoted=is_quoted)
        self.depth -= 1
        return words

    def _expand_node(self, node: Node, *, is_quoted: bool) -> list[Word]:
        kind = node.type
        if kind in {"word", "number"} and not node.child_count:
            return [Word(_unescape_word(decode_node(node)))]
        if kind == "concatenation":
            return self._expand_concatenation(node)
        if kind in {"simple_expansion", "expansion", "command_substitution"}:
            is_variable = kind != "command_substitution"
            words = self._expand_variable(node) if is_variable else [self._expand_output(node)]
            return words if is_quoted else [part for word in words for part in _split_word(word)]
        return self._expand_quoted(node)

    def expand_one(self, node: Node) -> Word:
        """Return the words of a node joined into one, as in an assignment."""
        return _join_words(self.expand(node), " ")

    def _expand_quoted(self, node: Node) -> list[Word]:
        kind, text = node.type, decode_node(node)
        if kind == "string":
            return self._expand_string(node)
        if kind == "raw_string":
            return [Word(text[1:-1])]
        if kind == "ansi_c_string":
            return [Word(_ANSI.sub(_decode_ansi_escape, text[2:-1]))]
        if kind == "translated_string":
            return [word for child in node.named_children for word in self.expand(child)]
        if kind == "process_substitution":
            self.substitutions.append(node)
        return [Word(text, known=not node.child_count)]

    def _expand_concatenation(self, node: Node) -> list[Word]:
        parts = [self.expand(child) for child in node.children]
        words = [_join_words(choice, "") for choice in islice(product(*parts), _MAX_WORDS)]
        if any(decode_node(child) == "{" for child in node.children):
            return [each for word in words for each in _expand_braces(word)]
        return words

    def _expand_string(self, node: Node) -> list[Word]:
        inner = [child for child in node.children if child.is_named]
        is_single = len(inner) == 1 and _count_bytes(inner[0]) == _count_bytes(node) - 2
        if is_single and _is_list_expansion(inner[0]):
            return self._expand_variable(inner[0])
        return [_join_words(self._split_string(node, inner), "")]

    def _split_string(self, node: Node, inner: Sequence[Node]) -> Iterable[Word]:
        """Split a string at its expansions; blanks between them have no node in the tree."""
        text, start, at = node.text or b"", node.start_byte, 1
        for child in inner:
            if child.type == "string_content":
                continue
            yield _unescape_literal(text[at : child.start_byte - start])
            yield _join_words(self.expand(child, is_quoted=True), " ")
            at = child.end_byte - start
        yield _unescape_literal(text[at : -1 if text.endswith(b'"') else None])

    def _expand_output(self, node: Node) -> Word:
        """Return the output of a substitution."""
        self.substitutions.append(node)
        printed = self.predict_output(node)
        if printed is None:
            return Word(decode_node(node), known=False)
        return Word(printed.rstrip("\n"))

    def _expand_variable(self, node: Node) -> list[Word]:
        """Return a variable's words; the source text if they are unknown."""
        name = _get_variable_name(node)
        operator = node.child_by_field_name("operator")
        words = self._look_up_variable(name)
        has_default = operator is not None and decode_node(operator) in {":-", "-", ":=", "="}
        if operator is not None and has_default and not any(word.text for word in words or ()):
            default = operator.next_sibling
            return self.expand(default) if default is not None and default.is_named else []
        if words is None or (operator is not None and not has_default):
            return [Word(decode_node(node), known=False)]
        return list(words)

    def _look_up_variable(self, name: str) -> tuple[Word, ...] | None:
        if name in {"@", "*"}:
            effort = self.scope.limits
            effort.characters -= sum(len(word.text) + 1 for word in self.scope.parameters)
            return self.scope.parameters if effort.characters > 0 else None
        if name.isascii() and name.isdigit() and name != "0":
            return self.scope.parameters[int(name) - 1 : int(name)] if len(name) < 4 else ()
        if name == "PWD" and name not in self.scope.variables:
            return (Word("."),)
        return self.scope.get_variable(name)


def decode_node(node: Node) -> str:
    """Return the decoded text of a node."""
    return decode_from_grammar(node.text or b"")


def _count_bytes(node: Node) -> int:
    return node.end_byte - node.start_byte


def _get_variable_name(node: Node) -> str:
    """Return the name in `$name`, `${name…}` and `${name[@]}`; "" for other nodes."""
    child = node.child(1)
    if child is None or child.type not in {"variable_name", "special_variable_name", "subscript"}:
        return ""
    return decode_node(child).partition("[")[0]


def _is_list_expansion(node: Node) -> bool:
    return (
        node.type.endswith("expansion") and re.search(r"@|\[[@*]\]", decode_node(node)) is not None
    )


def _unescape_literal(text: bytes) -> Word:
    return Word(_ESCAPED_IN_STRING.sub(_unescape_in_string, decode_from_grammar(text)))


def _join_words(words: Iterable[Word], between: str) -> Word:
    parts = tuple(words)
    return Word(between.join(part.text for part in parts), all(part.known for part in parts))


def _split_word(word: Word) -> list[Word]:
    """Split an unquoted value at its blanks."""
    return [Word(part) for part in word.text.split()] if word.known else [word]


def _expand_braces(word: Word) -> list[Word]:
    parts = _BRACES.match(word.text)
    if not parts:
        return [word]
    before, inside, after = parts.groups()
    return [Word(f"{before}{each}{after}", word.known) for each in inside.split(",")]


def _unescape_word(text: str) -> str:
    return _ESCAPED.sub(lambda match: match[1].strip("\n"), text) if "\\" in text else text


def _unescape_in_string(match: re.Match[str]) -> str:
    return match[1].strip("\n")


def _decode_ansi_escape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else _ANSI_NAMES.get(code, code)
