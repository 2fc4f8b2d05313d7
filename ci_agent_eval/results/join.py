"""Joining JUnit cases to episodes by node id, and listing where the two disagree. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.facts import EpisodeFacts, JUnitCase

MOST_LISTED = 100
"""Disagreements that are listed one by one; the rest is one finding with their number."""

State = Literal["passing", "failing", "skipped"]

_ADVICE = "the files are not of one run, or one was changed: run the suite again"
_SEVERITY = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}


@dataclass(frozen=True, slots=True)
class Joined:
    """What came of the join."""

    plain: tuple[JUnitCase, ...]
    """Cases that claimed to belong to an episode, and belong to none."""
    findings: tuple[Finding, ...]


def pytest_address(nodeid: str) -> tuple[str, str]:
    """Return the classname and name under which pytest writes a node id into JUnit XML.

    The rule is `mangle_test_address` of pytest's `_pytest/junitxml.py`; control
    characters in the name are escaped as its `bin_xml_escape` does.
    """
    path, _, tail = nodeid.partition("::")
    names, bracket, params = tail.partition("[")
    parts = [re.sub(r"\.py$", "", path.replace("/", ".")), *names.split("::")]
    params = f"[{params.removesuffix(']')}]" if bracket else ""
    return ".".join(parts[:-1]), _escaped(parts[-1] + params)


def join(
    episodes: Sequence[tuple[int, EpisodeFacts]], cases: Iterable[JUnitCase], *, complete: bool
) -> Joined:
    """Hold the cases against the episodes, each given with the number of its run.

    `complete` is False where a JUnit file could not be read to its end: then an episode
    without a case says nothing.
    """
    by_nodeid = _last_attempts(episodes)
    claims, plain = _claims(by_nodeid, cases)
    findings = [_without_episode(case.nodeid) for case in plain if case.nodeid is not None]
    findings += [
        finding
        for nodeid, claimed in claims.items()
        if (finding := _compared(nodeid, by_nodeid[nodeid], claimed)) is not None
    ]
    if complete:
        findings += _without_case(episodes, claims)
    return Joined(tuple(plain), _capped(sorted(findings)))


def _last_attempts(
    episodes: Iterable[tuple[int, EpisodeFacts]],
) -> dict[str, dict[tuple[str, int], EpisodeFacts]]:
    """Group by node id; of each scenario and iteration only the last attempt counts."""
    grouped: dict[str, dict[tuple[str, int], EpisodeFacts]] = defaultdict(dict)
    for _, facts in episodes:
        if facts.nodeid is None:
            continue
        group = grouped[facts.nodeid]
        known = group.get((facts.scenario_id, facts.iteration))
        if known is None or known.attempt <= facts.attempt:
            group[facts.scenario_id, facts.iteration] = facts
    return grouped


def _claims(
    by_nodeid: Mapping[str, object], cases: Iterable[JUnitCase]
) -> tuple[dict[str, list[JUnitCase]], list[JUnitCase]]:
    """Give each case to the node id it bears or stands for; the second part found none."""
    addresses = {pytest_address(nodeid): nodeid for nodeid in sorted(by_nodeid, reverse=True)}
    claims: dict[str, list[JUnitCase]] = defaultdict(list)
    plain = []
    for case in cases:
        nodeid = case.nodeid or addresses.get((case.classname, case.name))
        if nodeid is not None and nodeid in by_nodeid:
            claims[nodeid].append(case)
        else:
            plain.append(case)
    return claims, plain


def _compared(
    nodeid: str, group: Mapping[tuple[str, int], EpisodeFacts], cases: Sequence[JUnitCase]
) -> Finding | None:
    expected = {_episode_state(facts) for facts in group.values()}
    found = _case_state(group.values(), cases)
    if found in _possible(expected):
        return None
    told = _told(group.values(), expected)
    return Finding(
        "disagreement", nodeid, f"{told} in the JSON, and its JUnit case is {found}; {_ADVICE}"
    )


def _told(group: Iterable[EpisodeFacts], states: set[State]) -> str:
    ordered = sorted(group, key=lambda facts: (facts.scenario_id, facts.iteration))
    bad = [facts for facts in ordered if _episode_state(facts) == "failing"]
    first = (bad or ordered)[0]
    more = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
    state = "failing" if bad else " or ".join(sorted(states))
    return f"episode {first.scenario_id!r}{more} is {state}"


def _possible(states: set[State]) -> set[State]:
    """Say what a test with these episodes may come out as."""
    return {"failing"} if "failing" in states else states


def _episode_state(facts: EpisodeFacts) -> State:
    if facts.outcome == "skipped":
        return "skipped"
    hard = any(violation.hard for violation in facts.violations)
    return "passing" if facts.outcome == "passed" and not hard else "failing"


def _case_state(group: Iterable[EpisodeFacts], cases: Sequence[JUnitCase]) -> State:
    """Read the worst of the cases, or the last where the test was retried."""
    retried = any(facts.attempt > 1 for facts in group)
    case = cases[-1] if retried else max(cases, key=lambda case: _SEVERITY[case.outcome])
    if case.outcome == "skipped":
        return "skipped"
    return "passing" if case.outcome == "passed" else "failing"


def _without_episode(nodeid: str) -> Finding:
    return Finding(
        "disagreement", nodeid, f"its JUnit case is an episode that the JSON lacks; {_ADVICE}"
    )


def _without_case(
    episodes: Sequence[tuple[int, EpisodeFacts]], claims: Mapping[str, object]
) -> list[Finding]:
    """List episodes without a case, of the runs whose other episodes have one."""
    covered = {run for run, facts in episodes if facts.nodeid in claims}
    missing = {
        facts.nodeid
        for run, facts in episodes
        if run in covered and facts.nodeid is not None and facts.nodeid not in claims
    }
    message = f"the episode is in the JSON and its case is not in the JUnit file; {_ADVICE}"
    return [Finding("disagreement", nodeid, message) for nodeid in missing]


def _capped(findings: list[Finding]) -> tuple[Finding, ...]:
    if len(findings) <= MOST_LISTED:
        return tuple(findings)
    rest = len(findings) - MOST_LISTED
    more = Finding("disagreement", "", f"and {rest} more disagreements of JSON and JUnit")
    return (*findings[:MOST_LISTED], more)


_NOT_WRITTEN = re.compile(
    "[^\\u0009\\u000a\\u000d\\u0020-\\u007e\\u0080-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
)


def _escaped(text: str) -> str:
    return _NOT_WRITTEN.sub(lambda match: _code(ord(match.group())), text)


def _code(number: int) -> str:
    return f"#x{number:02X}" if number <= 0xFF else f"#x{number:04X}"
