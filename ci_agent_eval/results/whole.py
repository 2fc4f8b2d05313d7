"""What only shows when all is read: failures that no file explains, shared scenarios. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import EpisodeFacts
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.results.runs import Read

_MOST_SHARED = 20
_MOST_TESTS = 3


def unexplained_failures(
    runs: Iterable[Read], junit: Mapping[Path, SourceFile]
) -> Iterable[Finding]:
    """List the runs that pytest ended with status 1 and in which nothing failed.

    A run without a JUnit file of its own is explained by any that belongs to no run.
    """
    runs = list(runs)
    owned = {read.junit for read in runs}
    elsewhere = any(_is_bad(source) for path, source in junit.items() if path not in owned)
    for read in runs:
        own = junit.get(read.junit) if read.junit is not None else None
        explained = _is_bad(own) if own is not None else elsewhere
        if not explained and _failed_without_failure(read):
            advice = (
                "something besides the tests failed it, its output says what"
                if own is not None
                else "write junit.xml beside them (--junit-xml) and run again"
            )
            message = f"pytest ended with status 1, but nothing in these results failed; {advice}"
            yield Finding("disagreement", read.where, message)


def _failed_without_failure(read: Read) -> bool:
    session = read.session
    if session is None or session.state != "finished" or session.exit_status != 1:
        return False
    if session.collection_errors:
        return False
    last = {key[:3]: entry.facts for key, entry in sorted(read.entries.items(), key=_key)}
    return not any(map(_failed, last.values()))


def _key(item: tuple[tuple[str, str, int, int], object]) -> tuple[str, str, int, int]:
    return item[0]


def _failed(facts: EpisodeFacts) -> bool:
    if facts.evaluated is not None:
        return facts.outcome == "error"  # what fails in an evaluation fails no test
    return facts.outcome in {"failed", "error"} or any(v.hard for v in facts.violations)


def _is_bad(source: SourceFile) -> bool:
    return bool(source.failures or source.errors)


def shared_scenarios(episodes: Iterable[EpisodeFacts]) -> list[Finding]:
    """List the scenarios of several test functions; parametrizations of one are its iterations."""
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for facts in episodes:
        if facts.nodeid is not None:
            # Two agents at one scenario are held apart, whatever tests run them.
            tests[facts.scenario_id, facts.agent or ""].add(_function(facts.nodeid))
    shared = sorted((name, sorted(found)) for (name, _), found in tests.items() if len(found) > 1)
    findings = [_shared(scenario, functions) for scenario, functions in shared[:_MOST_SHARED]]
    if len(shared) > _MOST_SHARED:
        more = f"and {len(shared) - _MOST_SHARED} more scenarios of several tests"
        findings.append(Finding("shared_scenario", "", more, blocking=False))
    return findings


def _shared(scenario: str, functions: Sequence[str]) -> Finding:
    rest = len(functions) - _MOST_TESTS
    named = ", ".join(functions[:_MOST_TESTS]) + (f" and {rest} more" if rest > 0 else "")
    message = (
        f"scenario {scenario!r} is run by {len(functions)} tests ({named}); they count as its "
        "iterations; give each its own scenario_id unless that is meant"
    )
    return Finding("shared_scenario", functions[0], message, blocking=False)


def _function(nodeid: str) -> str:
    """Return a node id without its parameters."""
    path, colons, tail = nodeid.partition("::")
    return f"{path}{colons}{tail.partition('[')[0]}"
