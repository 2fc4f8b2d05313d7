"""Cards: one cause in one line, with details that open, and a reviewer's commands."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair
from ci_agent_eval.analysis.failure_causes import CauseRole, FailureCause
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.gate.failure_groups import group_failures, index_comparison
from ci_agent_eval.gate.report import Report
from ci_agent_eval.gate.waivers import ACKNOWLEDGEABLE
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.findings import FindingRows
from ci_agent_eval.render.links import Links, Place, quote_url, repository_path
from ci_agent_eval.render.manifest_differences import ManifestDifference
from ci_agent_eval.render.phrases import (
    Linked,
    Phrase,
    ScenarioKey,
    get_key,
    join_phrases,
    quote_place,
)
from ci_agent_eval.render.scenario_rows import ScenarioRow

MAX_WORD = 200
"""Characters of a name in a command; a longer one would not be copied as a whole."""
_FILE_NAME = re.compile(r"\.\w+$")
"""The end of a test's file. Ids of imported results begin with a tool: `promptfoo[gpt-5.1]`."""
ACCEPTED_DAYS = 30
"""Days until a proposed acknowledgement expires; a date would differ in every report."""


def list_commands(report: Report) -> Iterator[str]:
    """Yield the command that runs the first regressed scenario, and the one that accepts it."""
    regressed = _order_regressed(report)
    scenarios = {get_key(one): one for one in report.summary.scenarios}
    for key in regressed[:1]:
        if key in scenarios and (command := build_run_command(scenarios[key])):
            yield command
    acceptable = [key for key in regressed if not _fails_anyway(report, key)]
    for key in acceptable[:1]:
        if _is_copyable(key[0]) and not key[0].startswith("-"):
            name = shlex.quote(key[0])
            yield f'agent-eval acknowledge {name} --until {ACCEPTED_DAYS}d --reason "..."'


def build_run_command(scenario: ScenarioSummary, folder: str = "") -> str:
    """Return the command that runs a scenario as often as it ran.

    Empty: its name is too long, or it has no test, as traces and other tools' results. A file
    outside of the repository, or one that reads like an option, is left out. `folder` is the path
    from the reader's working folder to that of the files.
    """
    test = (scenario.nodeid or "").partition("::")[0]
    if not scenario.file and not _FILE_NAME.search(test):
        return ""
    file = repository_path(scenario.file or test)
    paths = [posixpath.join(folder, file)] if file and not file.startswith("-") else []
    words = ["agent-eval", "run", *paths, "--scenario", scenario.scenario_id]
    if scenario.tally.ran > 1:
        words += ["--iterations", str(scenario.tally.ran)]
    return shlex.join(words) if all(map(_is_copyable, words)) else ""


def _order_regressed(report: Report) -> Sequence[ScenarioKey]:
    """Return the scenarios that regressed, in the order of their causes, then the others."""
    found = _find_regressed(report)
    shown = [get_key(one.scenario) for group in group_failures(report) for one in group.scenarios]
    others = sorted(found.difference(shown), key=lambda key: build_natural_key(key[0]))
    return [*(key for key in shown if key in found), *others]


def _find_regressed(report: Report) -> set[ScenarioKey]:
    """Return the scenarios that fail the gate and did not in the baseline."""
    compared = index_comparison(report)
    found = {
        (reason.scenario_id, reason.agent)
        for reason in report.verdict.reasons
        if reason.scenario_id is not None and reason.kind in ACKNOWLEDGEABLE
    }
    newly = {key for key, one in compared.items() if one.change == "newly_failing"}
    failing = {
        get_key(item.scenario) for item in report.judged_scenarios() if item.judgement.fails_alone
    }
    return found | (newly & failing)


def _fails_anyway(report: Report, key: ScenarioKey) -> bool:
    """Say whether a reason gates that no acknowledgement accepts."""
    return any(
        (reason.scenario_id, reason.agent) == key and reason.kind not in ACKNOWLEDGEABLE
        for reason in report.verdict.reasons
    )


def _is_copyable(text: str) -> bool:
    return len(text) <= MAX_WORD and visible_line(text, MAX_WORD) == text and "`" not in text


SENTENCE_LIMIT = 1_000
"""Characters of a whole sentence."""


@dataclass(frozen=True, slots=True)
class DiffBlock:
    """What the agent did before and now, in lines with prefixes."""

    lines: Sequence[str]
    pair: BehaviourPair | None = None
    """The exchanges that the lines show; None: no conversation is known."""


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Output of a test, foreign text."""

    text: str


@dataclass(frozen=True, slots=True)
class ParagraphBlock:
    """A sentence."""

    text: Phrase


@dataclass(frozen=True, slots=True)
class ListBlock:
    """Lines, of which the first are shown."""

    lines: Sequence[Phrase]


@dataclass(frozen=True, slots=True)
class NamesBlock:
    """The scenarios of a cause, in natural order."""

    names: Sequence[str]


CardBlock: TypeAlias = DiffBlock | OutputBlock | ParagraphBlock | ListBlock | NamesBlock


@dataclass(frozen=True, slots=True)
class CardExample:
    """The scenario or test that stands for a cause; title, check and message are foreign text."""

    title: str
    place: Place
    """Where the check is, or the test."""
    check: str = ""
    """Name of the failed check; empty: it is no check."""
    message: str = ""
    command: str = ""
    """Command that runs it again; empty: unknown."""
    key: ScenarioKey | None = None
    """Of the scenario; None: it is a test."""


@dataclass(frozen=True, slots=True)
class CauseCard:
    """A cause in one line, with details that open."""

    role: CauseRole
    summary: Phrase
    body: Sequence[CardBlock] = ()
    scenarios: frozenset[ScenarioKey] = frozenset()
    """The scenarios that it concerns."""
    example: CardExample | None = None
    """None: it is about no scenario or test."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The parts of the report view that cards are built from."""

    report: Report
    links: Links
    scenarios: Sequence[ScenarioRow]
    baseline_findings: Sequence[BaselineFinding]
    overruns: Sequence[tuple[ScenarioRow | None, BudgetOverrun]]
    findings: FindingRows
    manifest: Sequence[ManifestDifference]
    manifest_advice: str

    def build_example(self, row: ScenarioRow, cause: FailureCause | None = None) -> CardExample:
        """Return a scenario as the example of a cause; None: it is over its budget."""
        command = build_run_command(row.scenario, self.links.folder)
        if cause is None:
            return CardExample(row.name.title, row.place, command=command, key=row.key)
        check = cause.name if cause.kind == "check" else ""
        message = cause.message if check else cause.sentence
        place = self.links.place(cause.file, cause.line)
        return CardExample(row.name.title, place, check, message, command, row.key)

    def quote_links(self, scenario_id: str, place: Place) -> Phrase:
        """Return the links to a scenario's conversation and to its place; empty: neither."""
        conversation, details = self.links.conversation(scenario_id), self.links.details
        links = []
        if conversation is not None:
            links.append(Linked("conversation", conversation))
        elif details is not None:
            links.append(Linked(details.name, quote_url(details.url)))
        if quoted := quote_place(place):
            links.append(quoted)
        return join_phrases([(link,) for link in links], " · ")
