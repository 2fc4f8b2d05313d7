"""Names and phrases of the report: our own words with quoted foreign text, links, emphasis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.render.escape import cut_middle, visible_line
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.numbers import count_noun

NO_AGENT = "no agent named"

ScenarioKey = tuple[str, str | None]
"""Scenario id and agent."""


@dataclass(frozen=True, slots=True)
class ScenarioName:
    """A scenario's name; id and agent are foreign text."""

    scenario_id: str
    agent: str | None = None
    """None: the id is enough; empty: its episodes name no agent."""

    @classmethod
    def of(cls, scenario: ScenarioSummary) -> ScenarioName:
        """Return the name of a scenario, with its agent where several ran it."""
        return cls(scenario.scenario_id, (scenario.agent or "") if scenario.among_agents else None)

    @property
    def title(self) -> str:
        """The name as plain text."""
        if self.agent is None:
            return self.scenario_id
        return f"{self.scenario_id} ({f'agent {self.agent}' if self.agent else NO_AGENT})"


def get_key(scenario: ScenarioComparison | ScenarioSummary) -> ScenarioKey:
    """Return the scenario id and the agent."""
    return scenario.scenario_id, scenario.agent


NAME_LIMIT = 60
"""Characters of a name, which is cut in its middle."""
MOST_NAMES = 3
"""Names of a list."""
CHECK_LIMIT = 100
"""Characters of a check's name or of a message."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """Foreign text, shown as code."""

    text: str
    limit: int = NAME_LIMIT

    @property
    def shown(self) -> str:
        """The text on one line, cut to the limit: a name in its middle, others at the end."""
        if self.limit <= NAME_LIMIT:
            return cut_middle(self.text, self.limit)
        return visible_line(self.text, self.limit)


@dataclass(frozen=True, slots=True)
class Strong:
    """Our own words, emphasized."""

    text: str


@dataclass(frozen=True, slots=True)
class Linked:
    """A link; without an address only its text."""

    text: str | Quoted
    url: str | None


Phrase: TypeAlias = tuple[str | Quoted | Strong | Linked, ...]


def quote_name(name: ScenarioName) -> Phrase:
    """Return a scenario's id, and its agent where several ran it."""
    if name.agent is None:
        return (Quoted(name.scenario_id),)
    if not name.agent:
        return (Quoted(name.scenario_id), f" ({NO_AGENT})")
    return (Quoted(name.scenario_id), " (", Quoted(name.agent, 40), ")")


def quote_place(place: Place) -> Linked | None:
    """Return `file:line` without its folders, which the link has; None: there is no file."""
    if not place.file:
        return None
    name = place.file.replace("\\", "/").rpartition("/")[2] if place.url else place.file
    return Linked(Quoted(f"{name}:{place.line}" if place.line else name), place.url)


def join_phrases(parts: Iterable[Phrase], separator: str) -> Phrase:
    """Return one phrase of all parts that are not empty."""
    found: list[str | Quoted | Strong | Linked] = []
    for part in parts:
        if part:
            found += [separator, *part] if found else part
    return tuple(found)


def join_first(
    parts: Sequence[Phrase], most: int, separator: str = ", ", *, noun: str = "scenario"
) -> Phrase:
    """Return the first parts and the number of the others: `a, b, c and 4 more scenarios`."""
    joined = join_phrases(parts[:most], separator)
    rest = len(parts) - most
    return (*joined, f" and {count_noun(rest, f'more {noun}')}") if rest > 0 else joined


def measure_phrase(phrase: Phrase) -> int:
    """Return the number of characters that a reader sees."""
    return len(get_phrase_text(phrase))


def get_phrase_text(phrase: Phrase) -> str:
    """Return the phrase as plain text on one line."""
    return "".join(map(_get_text, phrase))


def _get_text(part: str | Quoted | Strong | Linked) -> str:
    if isinstance(part, Linked):
        return _get_text(part.text)
    if isinstance(part, Quoted):
        return part.shown
    return part if isinstance(part, str) else part.text
