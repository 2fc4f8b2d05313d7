"""Parsers of JUnit's XML, each in a process of its own, on the same files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .runners import NODE, NODE_PROGRAM, SUITES, peer_python
from .runs import Failure, Result, environment, median, run

ROUNDS = 5
CASES = 1000
"""Of each file, one of which failed."""


@dataclass(frozen=True)
class Parser:
    """One that reads the files and counts their cases and failures."""

    name: str
    command: Sequence[str]
    note: str = ""


@dataclass(frozen=True)
class Parsed:
    """What a parser took for the files, its start-up included."""

    parser: Parser
    result: Result


def _python(program: str, name: str) -> tuple[str, ...]:
    return (program, str(SUITES / "junit_python.py"), name)


def _node(name: str) -> tuple[str, ...]:
    return (str(NODE_PROGRAM), str(SUITES / "junit_node.mjs"), name, str(NODE))


_PEERS = peer_python("junit")
FLOOR = Parser("expat alone", _python(sys.executable, "expat"), "counts two tags, keeps nothing")
OURS = Parser(
    "ours", _python(sys.executable, "ours"), "the reporter's loader, with all that it looks for"
)
PARSERS = (
    FLOOR,
    OURS,
    Parser("junitparser", _python(_PEERS, "junitparser"), "with lxml"),
    Parser("xunitparser", _python(_PEERS, "xunitparser")),
    Parser("junit2html", _python(_PEERS, "junit2html"), "its parser, no page"),
    Parser("xml2js (Node)", _node("xml2js"), "a general parser, which JUnit reporters use"),
    Parser("junit2json (Node)", _node("junit2json")),
    Parser("junit-to-ctrf (Node)", _node("junit-to-ctrf")),
    Parser("test-results-parser (Node)", _node("test-results-parser")),
)


def measured_parsers(
    write: Callable[[Path, int, int], None], files: int, say: Callable[[str], None]
) -> list[Parsed]:
    """Run every parser in turns on so many files, which `write` makes in a folder."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        write(folder, files, CASES)
        expected = f"{files * CASES} {files}"
        rounds: dict[str, list[Result]] = {parser.name: [] for parser in PARSERS}
        for number in range(ROUNDS):
            say(f"JUnit parsers, round {number + 1} of {ROUNDS}")
            for parser in PARSERS[:: 1 if number % 2 else -1]:
                rounds[parser.name].append(_parsed(parser, folder, expected))
    return [Parsed(parser, median(rounds[parser.name])) for parser in PARSERS]


def _parsed(parser: Parser, folder: Path, expected: str) -> Result:
    files = sorted(path.name for path in folder.glob("junit-*.xml"))
    result, text = run([*parser.command, *files], folder, environment(folder))
    counted = (text.splitlines() or [""])[-1]
    if not isinstance(result, Failure) and counted != expected:
        return Failure(f"counted {counted!r}, not {expected!r} cases and failures")
    return result
