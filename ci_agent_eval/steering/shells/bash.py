"""Parser of bash, sh and zsh text, based on tree-sitter's bash grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tree_sitter import Node

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word, get_program_name
from ci_agent_eval.steering.shells.bash_words import WordExpander, decode_node
from ci_agent_eval.steering.shells.grammar import (
    decode_from_grammar,
    encode_for_grammar,
    extract_heredocs,
    parse_tree,
)

_GRAMMAR = "tree_sitter_bash"
_LINE_CONTINUATION = re.compile(r"(?<=[\w'\"])\\\n(?=[\w'\"])")
"""A line continuation inside a word, which the grammar parses as two words."""
_MAX_SUBSTITUTION_DEPTH = 4
"""Maximum depth of nested substitutions with predicted output."""
_TIME_KEYWORD = re.compile(r"(?:(?<=[;&|({\n])|\A)([ \t]*)time[ \t]+(?:-p[ \t]+)?(?=[({!])")
"""`time` before a compound command, which the grammar does not support."""
_ESCAPES = (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\\\", "\\"), ("%%", "%"))
Visitor = Callable[[Node, str | None, tuple[Word, ...]], Iterator[ShellCommand]]
_SKIPPED_NODES = frozenset({"comment", "word", "heredoc_start", "heredoc_end", "regex"})


def parse_bash_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and update `scope`.

    Includes both branches of an `if`, and a loop's body for each value of its variable.
    """
    walker = _BashWalker(scope)
    plain = _TIME_KEYWORD.sub(r"\1", _LINE_CONTINUATION.sub("", text.replace("\r\n", "\n")))
    plain, walker.heredocs = extract_heredocs(plain)
    root = walker.parse(plain)
    if root is not None:
        yield from walker.walk(root, scope.stdin)


class _BashWalker:
    """Walks the syntax tree. Each method gets a node, its standard input and further words."""

    def __init__(self, scope: ShellScope) -> None:
        self.scope = scope
        self.substitution_depth = 0
        self.heredocs: dict[str, str] = {}
        self._visitors: Mapping[str, Visitor] = {
            "command": self._visit_command,
            "redirected_statement": self._visit_redirected,
            "pipeline": self._visit_pipeline,
            "variable_assignment": self._visit_assignment,
            "function_definition": self._visit_function,
            "for_statement": self._visit_loop,
        }

    def parse(self, text: str) -> Node | None:
        """Parse a text, unless too many earlier texts had syntax errors."""
        if self.scope.limits.syntax_errors <= 0:
            return None
        root = parse_tree(encode_for_grammar(text), _GRAMMAR)
        if root is None or root.has_error:
            self.scope.limits.syntax_errors -= 1
        self.scope.limits.is_incomplete |= root is None
        return root

    def walk(
        self, node: Node, stdin: str | None = None, extra: tuple[Word, ...] = ()
    ) -> Iterator[ShellCommand]:
        """Yield the commands of a node; the last one gets the further words."""
        limits = self.scope.limits
        limits.steps -= 1
        if node.type in _SKIPPED_NODES or limits.steps <= 0 or limits.depth <= 0:
            limits.is_incomplete |= limits.depth <= 0
            return
        limits.depth -= 1
        yield from self._visitors.get(node.type, self._visit_children)(node, stdin, extra)
        limits.depth += 1

    def _visit_children(
        self, node: Node, stdin: str | None, extra: tuple[Word, ...]
    ) -> Iterator[ShellCommand]:
        children = node.named_children
        while children and children[0].type == "list":  # `a && b && c` is nested to the left
            children[:1] = children[0].named_children
        for child in children[:-1]:
            yield from self.walk(child, stdin)
        if children:
            yield from self.walk(children[-1], stdin, extra)

    def _visit_command(
        self, node: Node, stdin: str | None, extra: tuple[Word, ...]
    ) -> Iterator[ShellCommand]:
        command, substitutions = self._read_command(node, stdin, extra)
        yield from self._walk_all(substitutions)
        name = command.words[0].text if command.words else ""
        if name in {"read", "mapfile", "readarray"}:
            for word in command.words[1:]:
                self.scope.variables[word.text] = (Word("{…}", known=False),)
        elif name == "unset":
            for word in command.words[1:]:
                self.scope.variables.pop(word.text, None)
        body = self.scope.functions.get(name)
        if not isinstance(body, Node) or self.scope.limits.calls <= 0:
            yield command
            return
        self.scope.limits.calls -= 1
        outer, self.scope.parameters = self.scope.parameters, command.words[1:]
        yield from self.walk(body, command.stdin)
        self.scope.parameters = outer

    def _walk_all(self, nodes: Sequence[Node]) -> Iterator[ShellCommand]:
        for node in nodes:
            yield from self.walk(node)

    def _create_expander(self) -> WordExpander:
        return WordExpander(self.scope, self._predict_substitution)

    def _read_command(
        self, node: Node, stdin: str | None, extra: tuple[Word, ...] = ()
    ) -> tuple[ShellCommand, list[Node]]:
        """Return a command and the substitutions in its words."""
        expander = self._create_expander()
        words: list[Word] = []
        environment: list[tuple[str, Word]] = []
        for child in node.children:
            match child.type:
                case "command_name":
                    words.extend(expander.expand(child.children[0]) if child.children else ())
                case "variable_assignment":
                    environment.append(_read_assignment(child, expander))
                case "herestring_redirect":
                    stdin = expander.expand_one(child.children[-1]).text
                case "file_redirect":
                    words.extend(_read_extra_words(child, expander))
                case _ if child.is_named:
                    words.extend(expander.expand(child))
        command = ShellCommand((*words, *extra), tuple(environment), stdin)
        return command, expander.substitutions

    def _visit_redirected(
        self, node: Node, stdin: str | None, extra: tuple[Word, ...]
    ) -> Iterator[ShellCommand]:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        heredoc = next((each for each in redirects if each.type == "heredoc_redirect"), None)
        if heredoc is not None:
            yield from self._visit_heredoc(node, heredoc, stdin, extra)
            return
        expander = self._create_expander()
        words = [word for each in redirects for word in _read_extra_words(each, expander)]
        strings = [each for each in redirects if each.type == "herestring_redirect"]
        stdin = expander.expand_one(strings[-1].children[-1]).text if strings else stdin
        if body is not None:
            self._record_writes(body, stdin, redirects)
            yield from self.walk(body, stdin, (*words, *extra))
        yield from self._walk_all(expander.substitutions)

    def _visit_heredoc(
        self, node: Node, heredoc: Node, stdin: str | None, extra: tuple[Word, ...]
    ) -> Iterator[ShellCommand]:
        """Parse the line of a here-document without it: the grammar misreads its rest."""
        start = heredoc.child(1)
        body = next((child for child in heredoc.children if child.type == "heredoc_body"), None)
        if start is None or body is None:
            yield from self._visit_children(node, stdin, extra)
            return
        yield from self._walk_all(body.named_children)
        text, offset = node.text or b"", node.start_byte
        before, after = text[: heredoc.start_byte - offset], text[start.end_byte - offset :]
        reparsed = self.parse(decode_from_grammar(before + b" " + after.partition(b"\n")[0]))
        if reparsed is not None:
            yield from self.walk(reparsed, self._find_heredoc_text(node, None), extra)

    def _record_writes(self, node: Node, stdin: str | None, redirects: Sequence[Node]) -> None:
        """Record the text that a command writes to a file, which may run later."""
        if node.type != "command":
            return
        for redirect in redirects:
            target = redirect.child_by_field_name("destination")
            if redirect.type != "file_redirect" or target is None:
                continue
            if redirect.children[0].type in {">", ">>", ">|"}:
                command, _ = self._read_command(node, stdin)
                output = _predict_output(command, self.scope.files)
                if output is not None:
                    path = self._create_expander().expand_one(target).text
                    self.scope.record_file(path, output)

    def _visit_pipeline(
        self, node: Node, stdin: str | None, extra: tuple[Word, ...]
    ) -> Iterator[ShellCommand]:
        *first, last = node.named_children
        for child in first:
            yield from self.walk(child, stdin)
            stdin = self._predict_node_output(child, stdin)
        yield from self.walk(last, stdin, extra)

    def _predict_node_output(self, node: Node, stdin: str | None) -> str | None:
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            if body is None:
                return None
            return self._predict_node_output(body, self._find_heredoc_text(node, stdin))
        if node.type != "command":
            return None
        command, _ = self._read_command(node, stdin)
        return _predict_output(command, self.scope.files)

    def _find_heredoc_text(self, node: Node, stdin: str | None) -> str | None:
        """Return the text of a here-document, which replaces other input."""
        for redirect in node.children_by_field_name("redirect"):
            for child in redirect.children:
                if child.type == "heredoc_body":
                    text = decode_node(child)
                    return self.heredocs.get(text.strip(), text)
        return stdin

    def _predict_substitution(self, substitution: Node) -> str | None:
        inner = [child for child in substitution.children if child.is_named]
        if len(inner) != 1 or self.substitution_depth >= _MAX_SUBSTITUTION_DEPTH:
            return None
        self.substitution_depth += 1
        output = self._predict_node_output(inner[0], None)
        self.substitution_depth -= 1
        return output

    def _visit_assignment(self, node: Node, *_: object) -> Iterator[ShellCommand]:
        expander = self._create_expander()
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            words = _read_values(value, expander)
            is_append = "+=" in [child.type for child in node.children]
            previous = self.scope.variables.get(decode_node(name), ()) if is_append else ()
            self.scope.variables[decode_node(name)] = (*previous, *words)
        yield from self._walk_all(expander.substitutions)

    def _visit_function(self, node: Node, *_: object) -> Iterator[ShellCommand]:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[decode_node(name)] = body
        yield from ()

    def _visit_loop(self, node: Node, stdin: str | None, *_: object) -> Iterator[ShellCommand]:
        expander = self._create_expander()
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values = node.children_by_field_name("value")
        words = tuple(word for value in values for word in expander.expand(value))
        yield from self._walk_all(expander.substitutions)
        if name is not None and body is not None:
            for round_words in self._split_rounds(words):
                self.scope.variables[decode_node(name)] = round_words
                yield from self.walk(body, stdin)

    def _split_rounds(self, words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
        """Return the loop variable's words for each round; the last gets the rest."""
        single = max(0, min(len(words) - 1, self.scope.limits.rounds))
        self.scope.limits.rounds -= single
        return [*((word,) for word in words[:single]), words[single:]]


def _read_assignment(node: Node, expander: WordExpander) -> tuple[str, Word]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    word = expander.expand_one(value) if value is not None else Word("")
    return (decode_node(name) if name is not None else ""), word


def _read_values(node: Node | None, expander: WordExpander) -> tuple[Word, ...]:
    if node is None:
        return (Word(""),)
    if node.type == "array":
        return tuple(word for child in node.named_children for word in expander.expand(child))
    return (expander.expand_one(node),)


def _read_extra_words(node: Node, expander: WordExpander) -> list[Word]:
    """Return the arguments that the grammar parses as extra destinations of a redirection."""
    if node.type != "file_redirect":
        return []
    destinations = node.children_by_field_name("destination")
    if destinations:
        expander.expand_one(destinations[0])  # records its substitutions
    return [word for each in destinations[1:] for word in expander.expand(each)]


def _predict_output(command: ShellCommand, files: Mapping[str, str]) -> str | None:
    """Return the output of a command; None if it is not predictable."""
    name = get_program_name(command.words[0]) if command.words else ""
    words = command.words[1:]
    texts = [word.text for word in words]
    arguments = [text for text in texts if not text.startswith("-")]
    output: str | None = None
    match name:
        case "echo" | "write-output":
            output = _print_texts(texts)
        case "printf" if words and all(word.known for word in words):
            output = _format_texts(*texts)
        case "cat" if arguments:
            parts = [files.get(each.removeprefix("./")) for each in arguments]
            output = None if None in parts else "".join(filter(None, parts))
        case "cat" | "tee":
            output = command.stdin
        case "which" | "type" | "command" if arguments:
            output = arguments[0] if name != "command" or texts[0] in {"-v", "-V"} else None
        case "git" if "--show-toplevel" in texts:
            output = "."  # for a suite the root of the repository is `.` or a parent folder
        case "pwd":
            output = "."
    return output


def _print_texts(texts: list[str]) -> str:
    escapes = False
    while texts and texts[0] in {"-n", "-e", "-E", "-ne", "-en"}:
        escapes |= "e" in texts.pop(0)
    return _unescape_text(" ".join(texts)) if escapes else " ".join(texts)


def _format_texts(template: str, *values: str) -> str:
    if "%" not in template.replace("%%", ""):
        return _unescape_text(template)
    end = "\n" if template.endswith("\\n") else " "
    return end.join(_unescape_text(value) if "%b" in template else value for value in values)


def _unescape_text(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text
