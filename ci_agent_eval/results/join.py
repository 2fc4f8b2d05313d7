"""Join JUnit cases to episodes by node id and list their disagreements. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, JUnitCase
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.redaction.secret_forms import escape_invalid_xml

MAX_LISTED = 100
"""Maximum number of disagreements listed; one finding counts the rest."""

CaseState = Literal["passing", "failing", "skipped"]

AttemptGroup = tuple[tuple[EpisodeRecord, ...], ...]
"""The episodes of one node id: for each scenario and iteration all attempts, in order."""

_ADVICE = "the files are not of one run, or one was changed: run the suite again"
_SEVERITY = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}


class JoinResult(NamedTuple):
    """The result of the join."""

    plain: tuple[JUnitCase, ...]
    """Cases that look like an episode's and match none."""
    findings: tuple[Finding, ...]
    raised: frozenset[str]
    """Node ids of the tests that failed. A failed evaluation's failed for another reason."""


def build_pytest_address(nodeid: str) -> tuple[str, str]:
    """Return the classname and name that pytest writes for a node id in JUnit XML.

    The rule is `mangle_test_address` of pytest's `_pytest/junitxml.py`; control
    characters in the name are escaped as its `bin_xml_escape` does.
    """
    path, _, tail = nodeid.partition("::")
    names, bracket, params = tail.partition("[")
    parts = [re.sub(r"\.py$", "", path.replace("/", ".")), *names.split("::")]
    params = f"[{params.removesuffix(']')}]" if bracket else ""
    return ".".join(parts[:-1]), escape_invalid_xml(parts[-1] + params)


def join_cases(
    episodes: Sequence[tuple[int, EpisodeRecord]],
    cases: Iterable[JUnitCase],
    *,
    complete: bool,
    cut_short: Container[int] = (),
) -> JoinResult:
    """Compare the cases with the episodes, each given with the number of its run.

    `complete` is False if a JUnit file could not be read to its end: then episodes without a
    case do not disagree. The runs in `cut_short` were stopped: their files need not agree,
    but every failure in them must be in both.
    """
    by_nodeid = _group_attempts(episodes)
    stopped_nodeids = {record.nodeid for run, record in episodes if run in cut_short}
    claims, plain = _assign_cases(by_nodeid, cases)
    findings = [_build_missing_episode(case.nodeid) for case in plain if case.nodeid is not None]
    findings += [
        finding
        for nodeid, claimed in claims.items()
        if (
            finding := _compare_cases(
                nodeid, by_nodeid[nodeid], claimed, was_stopped=nodeid in stopped_nodeids
            )
        )
    ]
    if complete:
        ended = [(run, record) for run, record in episodes if run not in cut_short]
        findings += _find_missing_cases(ended, claims)
    raised = frozenset(
        nodeid
        for nodeid, claimed in claims.items()
        if _find_case_state(by_nodeid[nodeid], claimed) == "failing"
    )
    return JoinResult(tuple(plain), _cap_findings(sorted(findings)), raised)


def _group_attempts(episodes: Iterable[tuple[int, EpisodeRecord]]) -> dict[str, AttemptGroup]:
    """Group the attempts by node id, then by scenario and iteration, in order."""
    grouped: dict[str, dict[tuple[str, int], list[EpisodeRecord]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for _, record in episodes:
        if record.nodeid is not None:
            grouped[record.nodeid][record.scenario_id, record.iteration].append(record)
    for group in grouped.values():
        for tries in group.values():
            tries.sort(key=lambda record: record.attempt)
    return {nodeid: tuple(map(tuple, group.values())) for nodeid, group in grouped.items()}


def _assign_cases(
    by_nodeid: Mapping[str, object], cases: Iterable[JUnitCase]
) -> tuple[dict[str, list[JUnitCase]], list[JUnitCase]]:
    """Assign each case to its node id; the second list has the cases without a match."""
    names = sorted(by_nodeid, reverse=True)
    addresses = {build_pytest_address(nodeid): nodeid for nodeid in names}
    # pytest writes a property with its control characters escaped, as it does a name.
    written = {escape_invalid_xml(nodeid): nodeid for nodeid in names}
    claims: dict[str, list[JUnitCase]] = defaultdict(list)
    plain = []
    for case in cases:
        nodeid = case.nodeid
        if not nodeid:
            nodeid = addresses.get((case.classname, case.name))
        elif nodeid not in by_nodeid:
            nodeid = written.get(escape_invalid_xml(nodeid))
        if nodeid is not None:
            claims[nodeid].append(case)
        else:
            plain.append(case)
    return claims, plain


def _compare_cases(
    nodeid: str, group: AttemptGroup, cases: Sequence[JUnitCase], *, was_stopped: bool
) -> Finding | None:
    last = [tries[-1] for tries in group]
    found = _find_case_state(group, cases)
    if not was_stopped and found not in _list_possible_states(last):
        message = f"{_describe_episodes(last)} in the JSON, and its JUnit case is {found}"
    elif _has_unexplained_cases(cases, group):
        message = f"it has {_count_cases(cases)}, more than its episodes in the JSON explain"
    else:
        return None
    return Finding("disagreement", nodeid, f"{message}; {_ADVICE}")


def _has_unexplained_cases(cases: Sequence[JUnitCase], group: AttemptGroup) -> bool:
    """Return whether there are more cases, failures or errors than the attempts explain.

    If a test failed and its teardown broke, pytest writes a second case, an error.
    """
    attempts = [record for tries in group for record in tries]
    cases = _merge_crashes(cases)
    failing = sum("failing" in _list_case_states(record) for record in attempts)
    failed = sum(case.outcome == "failed" for case in cases)
    errors = sum(case.outcome == "error" for case in cases)
    return len(cases) - errors > len(attempts) or failed > failing or errors > failing


def _merge_crashes(cases: Sequence[JUnitCase]) -> list[JUnitCase]:
    """Return the cases with one for all crashes.

    `--dist loadgroup` and `loadfile` send a test that crashed its worker to the next worker.
    """
    crashes = [case for case in cases if _CRASH.search(case.message or "")]
    return [case for case in cases if case not in crashes] + crashes[:1]


_CRASH = re.compile(r"worker '\w+' crashed while running ")
"""pytest-xdist's message, which pytest puts into its own."""


def _count_cases(cases: Sequence[JUnitCase]) -> str:
    bad = sum(case.outcome in {"failed", "error"} for case in cases)
    return f"{len(cases)} JUnit cases, {bad} of them failing"


def _describe_episodes(group: Iterable[EpisodeRecord]) -> str:
    ordered = sorted(group, key=lambda record: (record.scenario_id, record.iteration))
    bad = [record for record in ordered if _find_episode_state(record) == "failing"]
    first = (bad or ordered)[0]
    more = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
    states = {_find_episode_state(record) for record in ordered}
    state = "failing" if bad else " or ".join(sorted(states))
    return f"episode {first.scenario_id!r}{more} is {state}"


def _list_possible_states(group: Iterable[EpisodeRecord]) -> set[CaseState]:
    """Return the possible states of a test with these episodes."""
    states = [_list_case_states(record) for record in group]
    must_fail = any(possible == {"failing"} for possible in states)
    return {"failing"} if must_fail else set().union(*states)


def _list_case_states(record: EpisodeRecord) -> set[CaseState]:
    """Return the possible states of an episode's test.

    A failed evaluation is recorded and its test passes, unless something else fails the test,
    such as a strict xfail.
    """
    if record.outcome == "skipped":
        # An xfail mark expected the error of missing evidence.
        return {"skipped"}
    # With an older plugin, a test passes although its episode has missing evidence.
    if record.missing_evidence or (record.evaluation is not None and record.outcome == "failed"):
        return {"passing", "failing"}
    return {_find_episode_state(record)}


def _find_episode_state(record: EpisodeRecord) -> CaseState:
    if record.outcome == "skipped":
        return "skipped"
    # Hard budgets of an evaluation are measured and do not fail its test.
    hard = record.evaluation is None and any(violation.hard for violation in record.violations)
    return "passing" if record.outcome == "passed" and not hard else "failing"


def _find_case_state(group: AttemptGroup, cases: Sequence[JUnitCase]) -> CaseState:
    """Return the state of the worst case, or of the last one if the test was retried."""
    retried = any(len(tries) > 1 or tries[-1].attempt > 1 for tries in group)
    case = cases[-1] if retried else max(cases, key=lambda case: _SEVERITY[case.outcome])
    if case.outcome == "skipped":
        return "skipped"
    return "passing" if case.outcome == "passed" else "failing"


def _build_missing_episode(nodeid: str) -> Finding:
    return Finding(
        "disagreement", nodeid, f"its JUnit case is an episode that the JSON lacks; {_ADVICE}"
    )


def _find_missing_cases(
    episodes: Sequence[tuple[int, EpisodeRecord]], claims: Mapping[str, object]
) -> list[Finding]:
    """List the episodes without a case, in runs in which other episodes have one."""
    covered = {run for run, record in episodes if record.nodeid in claims}
    missing = {
        record.nodeid
        for run, record in episodes
        if run in covered and record.nodeid is not None and record.nodeid not in claims
    }
    message = f"the episode is in the JSON and its case is not in the JUnit file; {_ADVICE}"
    return [Finding("disagreement", nodeid, message) for nodeid in missing]


def _cap_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    if len(findings) <= MAX_LISTED:
        return tuple(findings)
    more = len(findings) - MAX_LISTED
    last = Finding("disagreement", "", f"and {more} more disagreements of JSON and JUnit")
    return (*findings[:MAX_LISTED], last)
