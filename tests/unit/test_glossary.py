"""The package keeps one vocabulary: class names are unique, and riddles and metaphors stay out."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ci_agent_eval"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "templates" not in path.parts)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "action.yml"]

SAME_NAME: dict[str, set[str]] = {}
"""Class names with several meanings; each needs a comment with its reason."""

FORBIDDEN = {
    # phrase: say
    r"leash(?:es)?": "supervisor, process group",
    r"shel(?:f|ves)": "cassette store",
    r"tapes?": "cassette session",
    r"lanes?": "scheduler, episode task",
    r"wing": "package",
    r"(?:the agent|the world)'s fault": "agent failure, infrastructure error",
    r"put up with": "quarantined, acknowledged",
    r"whose turn it is": "active",
    r"(?:told|tells? of)": "reported, given, described",
    r"speaks? for": "the noun that exists",
    r"stands? beside": "the noun that exists",
    r"(?:is|be|are|may be) had": "exists, is available",
    r"let it be": "an imperative",
    r"by itself": "alone, automatically",
    r"of (?:its|their) own": "own, separate",
    r"so many": "a number",
    r"who(?:ever|m)": "the noun",
    r"(?:is|are) to be": "must be, the noun",
    r"comes? to\b(?= (?:the same|nothing|this|that|together))": "equals, results in",
    r"held against": "compared with",
    r"what (?:is|was|became|it|they) ": "the noun that exists",
}
PHRASES = {re.compile(rf"\b{phrase}\b", re.IGNORECASE): say for phrase, say in FORBIDDEN.items()}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings and comments of a module, or the lines of a page, with their line."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from enumerate(source.splitlines(), start=1)
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                yield line, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_no_forbidden_phrase() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: say {say} instead of {hit.group()!r}"
        for path in [*MODULES, *PAGES]
        for line, text in prose(path)
        for phrase, say in PHRASES.items()
        for hit in phrase.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_class_names_are_unique() -> None:
    homes = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name.strip("_")].add(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == SAME_NAME
