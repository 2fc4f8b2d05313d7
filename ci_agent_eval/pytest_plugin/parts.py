"""What a session of pytest has of ours, in one place; `__init__` has the hooks that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ci_agent_eval.contract.iteration_range import IterationRange
    from ci_agent_eval.contract.results import Shard
    from ci_agent_eval.pytest_plugin.budgets.budget_stop import BudgetStop
    from ci_agent_eval.pytest_plugin.collection.declared_files import AffectedSelection
    from ci_agent_eval.pytest_plugin.collection.removed_episodes import (
        RemovedEpisodes,
        ScenarioListWriter,
    )
    from ci_agent_eval.pytest_plugin.collection.selection import RepeatedScenarios
    from ci_agent_eval.pytest_plugin.concurrency.scheduler import EpisodeScheduler
    from ci_agent_eval.pytest_plugin.evaluation.evaluation_reports import EvaluationReports
    from ci_agent_eval.pytest_plugin.opik.episode_artifact import EpisodeArtifact
    from ci_agent_eval.pytest_plugin.opik.experiment_report import ExperimentReport
    from ci_agent_eval.pytest_plugin.opik.experiments import ExperimentTests
    from ci_agent_eval.pytest_plugin.run_report import RunReport
    from ci_agent_eval.pytest_plugin.session import EpisodeSession
    from ci_agent_eval.pytest_plugin.terminal import EpisodeReports


class Parts:
    """The parts of one process's session; None: it does without.

    A plain class, for every start of pytest waits for it.
    """

    reports: EpisodeReports | None = None
    """Only the main process has it, and the next two."""
    evaluations: EvaluationReports | None = None
    run: RunReport | None = None
    episodes: EpisodeSession | None = None
    """Made with the first episode."""
    scheduler: EpisodeScheduler | None = None
    """Runs this process's episodes concurrently."""
    budgets: BudgetStop | None = None
    removed: RemovedEpisodes | None = None
    repeated: RepeatedScenarios | None = None
    listing: ScenarioListWriter | None = None
    experiment: ExperimentReport | None = None
    trials: ExperimentTests | None = None
    artifact: EpisodeArtifact | None = None

    started: float | None = None
    """When the session began, by the clock of the suite budgets."""
    parser: pytest.Parser | None = None
    """pytest's own."""
    forced_iterations: IterationRange | None = None
    """Iterations of every episode, whatever its marker asks for; only when scenarios run again."""
    scenario_count: int | None = None
    """Number of scenarios of the whole suite, of all shards; set if iterations are adaptive."""
    deselected: int = 0
    """Number of episodes that -k, -m or --deselect exclude."""
    shard: Shard | None = None
    """The shard of this process."""
    left_out: AffectedSelection | None = None
    """What `--episode-changes` left out."""


_PARTS = pytest.StashKey[Parts]()


def get_parts(config: pytest.Config) -> Parts:
    """Return the parts of this process's session."""
    return config.stash.setdefault(_PARTS, Parts())
