"""Parsers of JUnit's XML in Python: `junit_python.py PARSER FILE...` prints cases and failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.parsers.expat import ParserCreate

Counts = tuple[int, int]


def expat(files: Sequence[str]) -> Counts:
    """Count tags and keep nothing: what no parser in Python can go below."""
    seen = {"testcase": 0, "failure": 0}

    def start(tag: str, _: object) -> None:
        if tag in seen:
            seen[tag] += 1

    for path in files:
        parser = ParserCreate()
        parser.StartElementHandler = start
        with Path(path).open("rb") as file:
            parser.ParseFile(file)
    return seen["testcase"], seen["failure"]


def ours(files: Sequence[str]) -> Counts:
    """Load as the reporter does: every check and finding, cases kept as the report needs them."""
    from ci_agent_eval.results.load import load_results  # noqa: PLC0415 - each parser is imported alone

    tests = load_results((), files, root=Path.cwd()).tests.tally
    return tests.total, tests.failed


def junitparser(files: Sequence[str]) -> Counts:
    """Count the cases of its suites."""
    from junitparser import JUnitXml  # noqa: PLC0415 - as above

    cases = [case for path in files for suite in JUnitXml.fromfile(path) for case in suite]
    return len(cases), sum(case.is_failure for case in cases)


def junit2html(files: Sequence[str]) -> Counts:
    """Count the cases of its report's suites."""
    from junit2htmlreport.parser import Junit  # noqa: PLC0415 - as above

    suites = [suite for path in files for suite in Junit(path).suites]
    cases = [case for suite in suites for case in suite.all()]
    return len(cases), sum(case.failed() for case in cases)


def xunitparser(files: Sequence[str]) -> Counts:
    """Count the tests of its suites."""
    import xunitparser as library  # noqa: PLC0415 - as above

    cases = 0
    failures = 0
    for path in files:
        with Path(path).open("rb") as file:
            suite, _ = library.parse(file)
        kept = list(suite)
        cases += len(kept)
        failures += sum(case.failed for case in kept)
    return cases, failures


PARSERS: dict[str, Callable[[Sequence[str]], Counts]] = {
    parser.__name__: parser for parser in (expat, ours, junitparser, junit2html, xunitparser)
}

if __name__ == "__main__":
    print(*PARSERS[sys.argv[1]](sys.argv[2:]))
