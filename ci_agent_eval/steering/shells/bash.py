"""Bash, sh and zsh: the commands that a text runs, by tree-sitter's bash grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word
from ci_agent_eval.steering.shells.bash_words import WordExpander, decode_node
from ci_agent_eval.steering.shells.command_output import predict_output
from ci_agent_eval.steering.shells.grammar import parse_tree
from ci_agent_eval.steering.shells.grammar_encoding import decode_from_grammar, encode_for_grammar
from ci_agent_eval.steering.shells.heredocs import extract_heredocs

_GRAMMAR = "tree_sitter_bash"
_LINE_CONTINUATION = re.compile(r"(?<=[\w'\"])\\\n(?=[\w'\"])")
"""A line continued within a word, which the grammar takes for two words."""
_MAX_SUBSTITUTION_DEPTH = 4
"""Substitutions within substitutions whose output is followed."""
_TIME_KEYWORD = re.compile(r"(?:(?<=[;&|({\n])|\A)([ \t]*)time[ \t]+(?:-p[ \t]+)?(?=[({!])")
"""`time` before what is no simple command, which the grammar does not know."""
_SKIPPED_NODES = frozenset({"comment", "word", "heredoc_start", "heredoc_end", "regex"})


def commands_in(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and keep `scope` up to date.

    Both branches of an `if` count, and a loop's body for each value of its variable.
    """
    walk = _BashWalker(scope)
    plain = _TIME_KEYWORD.sub(r"\1", _LINE_CONTINUATION.sub("", text.replace("\r\n", "\n")))
    plain, walk.documents = extract_heredocs(plain)
    root = walk.parse(plain)
    if root is not None:
        yield from walk.run([_NodeVisit(root, scope.stdin)])


@dataclass(frozen=True, slots=True)
class _NodeVisit:
    """A node still to be read, with the text it gets and words that belong to its command."""

    node: Node
    stdin: str | None = None
    extra: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class _FunctionEnd:
    """The end of a function: its caller's parameters are back."""

    parameters: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class _LoopRound:
    """The start of a loop's round: its variable holds the next value."""

    name: str
    words: tuple[Word, ...]


_WalkStep = _NodeVisit | _FunctionEnd | _LoopRound | ShellCommand


class _BashWalker:
    """Walks the tree with a stack of its own: no depth of nesting can overflow it."""

    def __init__(self, scope: ShellScope) -> None:
        self.scope = scope
        self.steps: list[_WalkStep] = []
        self.printing = 0
        self.documents: dict[str, str] = {}

    def parse(self, text: str) -> Node | None:
        """Parse a text, unless too many before it were broken."""
        if self.scope.limits.broken <= 0:
            return None
        root = parse_tree(encode_for_grammar(text), _GRAMMAR)
        if root is None or root.has_error:
            self.scope.limits.broken -= 1
        self.scope.limits.is_incomplete |= root is None
        return root

    def run(self, steps: list[_WalkStep]) -> Iterator[ShellCommand]:
        self.steps = steps
        while self.steps and self.scope.limits.steps > 0:
            self.scope.limits.steps -= 1
            step = self.steps.pop()
            if isinstance(step, ShellCommand):
                yield step
            elif isinstance(step, _FunctionEnd):
                self.scope.parameters = step.parameters
            elif isinstance(step, _LoopRound):
                self.scope.variables[step.name] = step.words
            else:
                self._visit(step)

    def _then(self, steps: Sequence[_WalkStep]) -> None:
        self.steps.extend(reversed(steps))

    def _visit(self, visit: _NodeVisit) -> None:
        match visit.node.type:
            case "command":
                self._command(visit)
            case "redirected_statement":
                self._redirected(visit)
            case "pipeline":
                self._pipeline(visit)
            case "variable_assignment":
                self._assignment(visit.node)
            case "function_definition":
                self._function(visit.node)
            case "for_statement":
                self._loop(visit)
            case kind if kind not in _SKIPPED_NODES:
                self._children(visit)

    def _children(self, visit: _NodeVisit) -> None:
        children = [child for child in visit.node.children if child.is_named]
        if not children:
            return
        first = [_NodeVisit(child, visit.stdin) for child in children[:-1]]
        self._then([*first, _NodeVisit(children[-1], visit.stdin, visit.extra)])

    def _command(self, visit: _NodeVisit) -> None:
        expansion = self._expansion()
        command = self._read(visit, expansion)
        self._then([*(_NodeVisit(node) for node in expansion.substitutions), *self._calls(command)])

    def _expansion(self) -> WordExpander:
        return WordExpander(self.scope, self._printed)

    def _read(self, visit: _NodeVisit, expansion: WordExpander) -> ShellCommand:
        words: list[Word] = []
        environment: list[tuple[str, Word]] = []
        stdin = visit.stdin
        for child in visit.node.children:
            match child.type:
                case "command_name":
                    words.extend(expansion.words(child.children[0]) if child.children else ())
                case "variable_assignment":
                    environment.append(_read_assignment(child, expansion))
                case "herestring_redirect":
                    stdin = expansion.one(child.children[-1]).text
                case "file_redirect":
                    words.extend(_read_extra_words(child, expansion))
                case _ if child.is_named:
                    words.extend(expansion.words(child))
        return ShellCommand((*words, *visit.extra), tuple(environment), stdin)

    def _calls(self, command: ShellCommand) -> list[_WalkStep]:
        """Return the body of the function that a command calls, or the command itself."""
        name = command.words[0].text if command.words else ""
        if name in {"read", "mapfile", "readarray"}:
            for word in command.words[1:]:
                self.scope.variables[word.text] = (Word("{…}", known=False),)
        elif name == "unset":
            for word in command.words[1:]:
                self.scope.variables.pop(word.text, None)
        body = self.scope.functions.get(name)
        if not isinstance(body, Node) or self.scope.limits.calls <= 0:
            return [command]
        self.scope.limits.calls -= 1
        leave = _FunctionEnd(self.scope.parameters)
        self.scope.parameters = command.words[1:]
        return [_NodeVisit(body, command.stdin), leave]

    def _redirected(self, visit: _NodeVisit) -> None:
        body = visit.node.child_by_field_name("body")
        redirects = visit.node.children_by_field_name("redirect")
        document = next((each for each in redirects if each.type == "heredoc_redirect"), None)
        if document is not None:
            self._document(visit, document)
            return
        expansion = self._expansion()
        extra = [word for each in redirects for word in _read_extra_words(each, expansion)]
        strings = [each for each in redirects if each.type == "herestring_redirect"]
        stdin = expansion.one(strings[-1].children[-1]).text if strings else visit.stdin
        self._then([_NodeVisit(node) for node in expansion.substitutions])
        if body is not None:
            inner = _NodeVisit(body, stdin, (*extra, *visit.extra))
            self._writes(inner, redirects)
            self._then([inner])

    def _document(self, visit: _NodeVisit, document: Node) -> None:
        """Read the line of a here-document anew without it: the grammar stumbles over its rest."""
        start = document.child(1)
        body = next((child for child in document.children if child.type == "heredoc_body"), None)
        if start is None or body is None:
            self._children(visit)
            return
        text, offset = visit.node.text or b"", visit.node.start_byte
        line_end = text.find(b"\n", start.end_byte - offset)
        line = (
            text[: document.start_byte - offset]
            + b" "
            + text[start.end_byte - offset : line_end if line_end >= 0 else None]
        )
        again = self.parse(decode_from_grammar(line))
        steps: list[_WalkStep] = [_NodeVisit(child) for child in body.children if child.is_named]
        if again is not None:
            steps.append(_NodeVisit(again, self._given(visit.node, None), visit.extra))
        self._then(steps)

    def _writes(self, visit: _NodeVisit, redirects: Sequence[Node]) -> None:
        """Remember what a command writes into a file, which may be run later."""
        if visit.node.type != "command":
            return
        for redirect in redirects:
            target = redirect.child_by_field_name("destination")
            if redirect.type != "file_redirect" or target is None:
                continue
            if redirect.children[0].type in {">", ">>", ">|"}:
                printed = predict_output(self._read(visit, self._expansion()), self.scope.files)
                if printed is not None:
                    self.scope.write(self._expansion().one(target).text, printed)

    def _pipeline(self, visit: _NodeVisit) -> None:
        children = [child for child in visit.node.children if child.is_named]
        text = visit.stdin
        steps: list[_WalkStep] = []
        for child in children:
            extra = visit.extra if child is children[-1] else ()
            steps.append(_NodeVisit(child, text, extra))
            text = self._output(child, text)
        self._then(steps)

    def _output(self, node: Node, stdin: str | None) -> str | None:
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            return self._output(body, self._given(node, stdin)) if body is not None else None
        if node.type != "command":
            return None
        return predict_output(
            self._read(_NodeVisit(node, stdin), self._expansion()), self.scope.files
        )

    def _given(self, node: Node, stdin: str | None) -> str | None:
        """Return the text of a here-document, which takes the place of other input."""
        for redirect in node.children_by_field_name("redirect"):
            for child in redirect.children:
                if child.type == "heredoc_body":
                    held = decode_node(child)
                    return self.documents.get(held.strip(), held)
        return stdin

    def _printed(self, substitution: Node) -> str | None:
        inner = [child for child in substitution.children if child.is_named]
        if len(inner) != 1 or self.printing >= _MAX_SUBSTITUTION_DEPTH:
            return None
        self.printing += 1
        printed = self._output(inner[0], None)
        self.printing -= 1
        return printed

    def _assignment(self, node: Node) -> None:
        expansion = self._expansion()
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            words = _read_values(value, expansion)
            added = "+=" in [child.type for child in node.children]
            before = self.scope.variables.get(decode_node(name), ()) if added else ()
            self.scope.variables[decode_node(name)] = (*before, *words)
        self._then([_NodeVisit(each) for each in expansion.substitutions])

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[decode_node(name)] = body

    def _loop(self, visit: _NodeVisit) -> None:
        expansion = self._expansion()
        name = visit.node.child_by_field_name("variable")
        values = visit.node.children_by_field_name("value")
        words = tuple(word for value in values for word in expansion.words(value))
        body = visit.node.child_by_field_name("body")
        steps: list[_WalkStep] = [_NodeVisit(each) for each in expansion.substitutions]
        if name is not None and body is not None:
            for held in self._rounds(words):
                steps += [_LoopRound(decode_node(name), held), _NodeVisit(body, visit.stdin)]
        self._then(steps)

    def _rounds(self, words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
        """Return what a loop's variable holds in each round; in the last one, all that is left."""
        single = max(0, min(len(words) - 1, self.scope.limits.rounds))
        self.scope.limits.rounds -= single
        return [*((word,) for word in words[:single]), words[single:]]


def _read_assignment(node: Node, expansion: WordExpander) -> tuple[str, Word]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    word = expansion.one(value) if value is not None else Word("")
    return (decode_node(name) if name is not None else ""), word


def _read_values(node: Node | None, expansion: WordExpander) -> tuple[Word, ...]:
    if node is None:
        return (Word(""),)
    if node.type == "array":
        return tuple(
            word for child in node.children if child.is_named for word in expansion.words(child)
        )
    return (expansion.one(node),)


def _read_extra_words(node: Node, expansion: WordExpander) -> list[Word]:
    """Return the arguments that the grammar takes for further destinations of a redirection."""
    if node.type != "file_redirect":
        return []
    destinations = node.children_by_field_name("destination")
    if destinations:
        expansion.one(destinations[0])  # for the substitutions in it
    return [word for each in destinations[1:] for word in expansion.words(each)]
