"""The name of a scenario: its id, and its agent where several agents run it."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.summary import ScenarioSummary

NO_AGENT = "no agent named"

ScenarioKey = tuple[str, str | None]
"""Scenario id and agent."""


@dataclass(frozen=True, slots=True)
class ScenarioName:
    """A scenario's name; id and agent are foreign text."""

    scenario_id: str
    agent: str | None = None
    """None: the id is enough; empty: its episodes name no agent."""

    @property
    def key(self) -> ScenarioKey:
        """Id and agent."""
        return self.scenario_id, self.agent

    @property
    def title(self) -> str:
        """The name as plain text."""
        if self.agent is None:
            return self.scenario_id
        return f"{self.scenario_id} ({f'agent {self.agent}' if self.agent else NO_AGENT})"


def get_key(scenario: ScenarioComparison | ScenarioSummary) -> ScenarioKey:
    """Return the scenario id and the agent."""
    return scenario.scenario_id, scenario.agent
