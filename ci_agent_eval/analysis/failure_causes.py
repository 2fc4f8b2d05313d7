"""Causes of failures: failures of several scenarios that have the same cause are one group. Pure.

`docs/decisions/0055-comment-by-cause.md` explains the choices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.stops import AGENT_FINISHED
from ci_agent_eval.contract.wording import (
    build_natural_key,
    replace_varying_parts,
    split_place,
    summarize_reason,
)

CauseKind = Literal["check", "message", "error"]
"""`check`: a failed check or assertion. `message`: an exception, or a failure without a check.
`error`: an infrastructure error, so that the agent was not judged."""

CauseKey = tuple[CauseKind, str]

FailureHistory = Literal["new", "unknown", "still"]
"""`new`: it passed in the baseline. `unknown`: it is not compared.
`still`: it failed there, too."""

CauseRole = Literal["gates", "warns", "contributes", "informs"]
"""`gates`: it fails the gate. `contributes`: it is part of a drop of the whole suite. `informs`: it
is a change without a failure."""

CAUSE_ROLES: tuple[CauseRole, ...] = ("gates", "contributes", "warns", "informs")
_HISTORIES: tuple[FailureHistory, ...] = ("new", "unknown", "still")
"""In the order of the groups."""

_EXCEPTION = re.compile(
    r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Failed|Timeout|Warning)", re.ASCII
)


_HTTP_STATUS = re.compile(
    r"(?:\b(?:HTTP|http)(?:/[\d.]+)? |\b[Cc]ode: |\b[Ss]tatus(?:[ _]code)?[:= ]{1,2}"
    r"|^(?:[\w.]+: )?(?=\d{3} [A-Z][a-z]))([45]\d\d)\b"
)
"""The status in messages of HTTP clients: `Error code: 429`, `HTTP 500`, `status 503`."""


def find_http_status(message: str) -> str:
    """Return the HTTP status of an error's message; empty: none."""
    found = _HTTP_STATUS.search(message)
    return "" if found is None else found[1]


def find_exception(message: str) -> str:
    """Return the type that a message begins with; empty: none."""
    found = _EXCEPTION.match(message)
    return "" if found is None else found[0]


_OUTAGES = re.compile(
    r"API|Connect|HTTP|Network|OSError|Overload|Protocol|Quota|RateLimit|Remote|Service|SSL|"
    r"Throttl|Time[Oo]ut|Transport|Unavailable|gaierror"
)
"""In the names of exceptions that say that something outside of the agent's code failed."""


class FailureCause(NamedTuple):
    """Why a scenario fails; name and message are foreign text."""

    kind: CauseKind
    name: str
    """Name of the check, or type of the exception; empty: none."""
    message: str
    """First line of the message; empty: none."""
    file: str | None = None
    """Where the assertion is."""
    line: int | None = None
    iterations: int | None = None
    """Number of iterations that it ended; None: unknown."""

    @property
    def key(self) -> CauseKey:
        """Equal for equal causes.

        A check is named by its author; its message, which often quotes the answer or is a judge's,
        says the same of no two scenarios. An answer of a server is its status: an outage is one
        cause.
        """
        if self.name == AGENT_FINISHED:
            # Our own check: its message begins with the reason of the stop.
            return self.kind, f"{self.name}: {self.message.partition(':')[0]}"
        if self.kind == "check":
            return self.kind, replace_varying_parts(self.name)
        if status := find_http_status(self.sentence):
            return self.kind, f"{self.name or find_exception(self.sentence)}: HTTP {status}"
        return self.kind, replace_varying_parts(self.sentence)

    @property
    def sentence(self) -> str:
        """The name and the message, or the one that there is."""
        if not self.message or self.message.startswith(self.name):
            return self.message or self.name
        return f"{self.name}: {self.message}" if self.name else self.message


def is_crash(cause: FailureCause) -> bool:
    """Say whether an error was raised by code, as far as its type tells, and not by an outage."""
    names = [name for name in _EXCEPTION.findall(cause.sentence) if name != "AgentRunError"]
    is_outage = find_http_status(cause.sentence) or any(map(_OUTAGES.search, names))
    return cause.kind == "error" and bool(names) and not is_outage


def find_failure_cause(scenario: ScenarioSummary) -> FailureCause | None:
    """Return the cause of most failed iterations; None: none failed."""
    if scenario.failures:
        failed = max(scenario.failures, key=lambda one: one.iterations)
        return _build_assertion_cause(failed.assertion, scenario, failed.iterations)
    if scenario.reasons:
        return _build_reason_cause("message", scenario.reasons[0], scenario)
    if scenario.tally.failed:
        return FailureCause("message", "", "", scenario.file, scenario.line)
    return None


def find_episode_cause(episode: EpisodeRecord) -> FailureCause | None:
    """Return the cause of one episode's failure or error; None: it has neither."""
    if episode.outcome == "failed" and episode.failed_assertions:
        return _build_assertion_cause(episode.failed_assertions[0], episode)
    if episode.outcome in {"failed", "error"}:
        kind: CauseKind = "message" if episode.outcome == "failed" else "error"
        return _build_reason_cause(kind, episode.reason, episode)
    return None


def _build_assertion_cause(
    found: Assertion, test: ScenarioSummary | EpisodeRecord, iterations: int | None = None
) -> FailureCause:
    is_exception = _EXCEPTION.fullmatch(found.name) is not None
    place = (found.file, found.line) if found.file else (test.file, test.line)
    message = summarize_reason(found.reason or "")
    kind: CauseKind = "message" if is_exception else "check"
    return FailureCause(kind, found.name, message, *place, iterations)


def list_error_causes(scenario: ScenarioSummary) -> tuple[FailureCause, ...]:
    """Return the causes of the iterations that ended in an infrastructure error."""
    return tuple(
        _build_reason_cause("error", error.reason, scenario, error.iterations)
        for error in scenario.errors
    )


def _build_reason_cause(
    kind: CauseKind,
    reason: str | None,
    test: ScenarioSummary | EpisodeRecord,
    iterations: int | None = None,
) -> FailureCause:
    """Return a cause without an assertion; its place is the exception's, else the test's."""
    message, file, line = split_place(reason or "")
    place = (file, line) if file else (test.file, test.line)
    return FailureCause(kind, "", message, *place, iterations)


class AffectedScenario(NamedTuple):
    """A scenario with the cause of its failures and their effect."""

    scenario: ScenarioSummary
    cause: FailureCause
    role: CauseRole
    history: FailureHistory = "unknown"


class CauseGroup(NamedTuple):
    """The scenarios that fail for one cause, in natural order."""

    scenarios: tuple[AffectedScenario, ...]

    @property
    def first(self) -> AffectedScenario:
        """The first scenario."""
        return self.scenarios[0]

    @property
    def key(self) -> CauseKey:
        """The cause's key."""
        return self.first.cause.key

    @property
    def role(self) -> CauseRole:
        """The role of its scenarios."""
        return self.first.role

    @property
    def iterations(self) -> int:
        """Number of iterations, as far as known."""
        return sum(one.cause.iterations or 0 for one in self.scenarios)


def group_by_cause(affected: Iterable[AffectedScenario]) -> tuple[CauseGroup, ...]:
    """Group scenarios of equal cause, role and history.

    Gating groups are first, of them those that passed before, then the largest.
    """
    found: dict[object, list[AffectedScenario]] = {}
    for one in affected:
        found.setdefault((one.cause.key, one.role, one.history), []).append(one)
    groups = (CauseGroup(tuple(sorted(group, key=_natural_key))) for group in found.values())
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                CAUSE_ROLES.index(group.role),
                _HISTORIES.index(group.first.history),
                -len(group.scenarios),
                _natural_key(group.first),
                group.key,
            ),
        )
    )


def _natural_key(one: AffectedScenario) -> tuple[list[tuple[int, str]], str]:
    return build_natural_key(one.scenario.scenario_id), one.scenario.agent or ""
