"""Cards: one cause in one line, with details that open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair
from ci_agent_eval.analysis.failure_causes import CauseRole, FailureCause
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.commands import build_run_command
from ci_agent_eval.render.findings import FindingRows
from ci_agent_eval.render.links import Links, Place, quote_url
from ci_agent_eval.render.manifest_differences import ManifestDifference
from ci_agent_eval.render.phrases import Linked, Phrase, ScenarioKey, join_phrases, quote_place
from ci_agent_eval.render.scenario_rows import ScenarioRow

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
