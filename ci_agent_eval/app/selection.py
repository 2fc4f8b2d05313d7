"""Which scenarios a run needs: those that the change can have affected, or all of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ci_agent_eval.analysis.comparison.model import NoBaseline
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.app.pipeline import Job
from ci_agent_eval.contract.dependencies import Dependencies
from ci_agent_eval.contract.run_plan import RunPlan, UnchangedScenario
from ci_agent_eval.dependencies.document import unpack_dependencies
from ci_agent_eval.dependencies.environment import compute_installation_digest
from ci_agent_eval.dependencies.git import GitRepository, find_repository
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.dependencies.selection.changes import TreeChanges, compare_trees
from ci_agent_eval.dependencies.selection.model import (
    EarlierProblem,
    FullRun,
    SelectedScenario,
    Selection,
)
from ci_agent_eval.dependencies.selection.select import SelectionRules, select_affected
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.request import EarlierRun, FoundBaseline

AFFECTED_EVENTS = frozenset({"pull_request", "pull_request_target", "merge_group"})
"""Events whose runs may leave scenarios out; on any other, such as a push, everything runs."""


@dataclass(frozen=True, slots=True)
class AffectedSelection:
    """The selection of a job: against which tree, and by which limits."""

    root: Path
    environ: Mapping[str, str]
    rules: SelectionRules
    head: str | None = None
    """The commit that the results are about; None: the working tree's."""
    full_run: FullRun | None = None
    """Why the job runs everything, whatever changed."""
    carries: bool = False
    """Whether unchanged scenarios are left out of a run; otherwise they only run last."""

    def plan_run(self, found: FoundBaseline | None) -> RunPlan:
        """Return the plan of a run against a baseline."""
        latest = None if found is None else found.latest
        if latest is None:
            return RunPlan()
        plan = build_run_plan(self.select(latest), latest)
        if self.carries and latest.is_trusted:
            return plan
        return plan.model_copy(update={"unchanged": (), "variables": {}})

    def explain(self, found: FoundBaseline | None) -> Selection:
        """Return the selection against a baseline; without a usable one everything runs."""
        if found is None or isinstance(found.baseline, NoBaseline) or found.latest is None:
            return Selection(full_run=FullRun("no_dependencies"))
        if not found.latest.is_trusted:
            return Selection(full_run=FullRun("untrusted"))
        return self.select(found.latest)

    def select(self, latest: EarlierRun) -> Selection:
        """Return the selection against an earlier run, from its files and git alone."""
        if self.full_run is not None:
            return Selection(full_run=self.full_run)
        if not latest.dependencies:
            return Selection(full_run=FullRun("no_dependencies", latest.problem))
        repository = find_repository(self.root, self.environ)
        if repository is None:
            return Selection(full_run=FullRun("no_commit", "there is no git repository"))
        problems = find_earlier_problems(latest.episodes)
        return _merge_selections(
            [self._select_one(repository, one, problems) for one in latest.dependencies], problems
        )

    def _select_one(
        self,
        repository: GitRepository,
        document: Dependencies,
        problems: Mapping[str, EarlierProblem | None],
    ) -> Selection:
        """Select among the scenarios of one document; a shard has its own."""
        try:
            base = unpack_dependencies(document)
            changes = self._compare(repository, base)
        except ValueError as error:
            return Selection(full_run=FullRun("no_dependencies", str(error)))
        except (OSError, subprocess.SubprocessError):
            return Selection(full_run=FullRun("no_commit", base.commit or ""))
        own = {name: problem for name, problem in problems.items() if name in base.scenarios}
        return select_affected(base, own, changes, self.rules)

    def _compare(self, repository: GitRepository, base: RunDependencies) -> TreeChanges:
        if base.commit is None:
            return TreeChanges()  # `select_affected` refuses it
        head = None if self.head is None or _has_checked_out(repository, self.head) else self.head
        return compare_trees(repository, base.commit, head, base.hashes, base.list_absent())


def _has_checked_out(repository: GitRepository, commit: str) -> bool:
    """Return whether the working tree is a commit, or GitHub's merge of it with its base."""
    words = ("rev-list", "--parents", "--max-count=1", "HEAD")
    return commit in repository.run(*words).decode("ascii", "replace").split()


def _merge_selections(
    found: Sequence[Selection], problems: Mapping[str, EarlierProblem | None]
) -> Selection:
    full_run = next((one.full_run for one in found if one.full_run is not None), None)
    if full_run is not None:
        return Selection(full_run=full_run)
    selected = [scenario for one in found for scenario in one.selected]
    unchanged = {name for one in found for name in one.unchanged}
    unchanged -= {one.scenario_id for one in selected}
    lost = problems.keys() - unchanged - {one.scenario_id for one in selected}
    selected += [
        SelectedScenario(name, problems[name] or "no_dependencies") for name in sorted(lost)
    ]
    ordered = sorted(selected, key=lambda one: one.scenario_id)
    return Selection(tuple(ordered), tuple(sorted(unchanged)))


def find_earlier_problems(episodes: Sequence[EpisodeRecord]) -> dict[str, EarlierProblem | None]:
    """Return for each scenario why it runs whatever changed; None: all its episodes passed."""
    by_scenario: dict[str, list[EpisodeRecord]] = {}
    for episode in episodes:
        by_scenario.setdefault(episode.scenario_id, []).append(episode)
    return {name: _find_problem(found) for name, found in sorted(by_scenario.items())}


def _find_problem(episodes: Sequence[EpisodeRecord]) -> EarlierProblem | None:
    passed = sum(map(_has_passed, episodes))
    judged = sum(one.outcome in {"passed", "failed"} for one in episodes)
    declared = max(one.minimum_iterations or one.iterations for one in episodes)
    if passed < judged:
        return "flaky" if passed else "failed"
    if judged < max(len(episodes), declared):
        return "inconclusive"
    return "flaky" if any(one.attempt > 1 for one in episodes) else None


def _has_passed(episode: EpisodeRecord) -> bool:
    return episode.outcome == "passed" and not any(one.hard for one in episode.violations)


def build_run_plan(selection: Selection, latest: EarlierRun) -> RunPlan:
    """Return the plan that carries the unchanged scenarios over, and runs the selected first."""
    runs = [unpack_dependencies(one) for one in latest.dependencies]
    environments = {
        compute_installation_digest(one.python, one.platform, one.distributions) for one in runs
    }
    variables: dict[str, str | None] = {}
    differing: set[str] = set()
    for name, digest in (item for one in runs for item in one.variables.items()):
        if variables.setdefault(name, digest) != digest:
            differing.add(name)  # shards had different values: it counts as changed
    known = {episode.scenario_id for episode in latest.episodes}
    return RunPlan(
        unchanged=tuple(_list_unchanged(selection, runs)),
        environment=environments.pop() if len(environments) == 1 else None,
        variables={name: one for name, one in variables.items() if name not in differing},
        first=tuple(one.scenario_id for one in selection.selected),
        known=tuple(sorted(known)),
    )


def _list_unchanged(
    selection: Selection, runs: Sequence[RunDependencies]
) -> Iterator[UnchangedScenario]:
    for name in selection.unchanged:
        found = [one.find_dependencies(name) for one in runs]
        names = {variable for one in found if one is not None for variable in one.variables}
        yield UnchangedScenario(scenario_id=name, variables=tuple(sorted(names)))


def build_selection(
    job: Job, event: str | None = None, head: str | None = None
) -> AffectedSelection:
    """Return the selection of a job: `event` started its workflow, `head` is the tested commit."""
    settings = job.settings.select
    rules = SelectionRules(job.now or 0, settings.max_age_days)
    carries, full_run = settings.mode == "affected", choose_full_run(event)
    return AffectedSelection(job.root, job.environ, rules, head, full_run, carries)


def with_selection(job: Job, event: str | None, head: str | None) -> Job:
    """Return the job with the selection that its settings and its event demand."""
    found = build_selection(job, event, head)
    return replace(job, plan_run=found.plan_run, select=found.select)


def require_baseline(job: Job) -> None:
    """Raise InputError if a job selects by a baseline and names none."""
    settings = job.settings
    if settings.select.mode == "affected" and settings.compare.baseline is None:
        raise InputError(
            "select affected: there is no baseline to select by; set baseline (artifact in a "
            "workflow, or a report folder or git:REF:PATH of main)"
        )


def choose_full_run(event: str | None) -> FullRun | None:
    """Return why a workflow's event runs everything, or None; `event` None: on a laptop."""
    if event is None or event in AFFECTED_EVENTS:
        return None
    if event == "schedule":
        return FullRun("schedule")
    return FullRun("event", event)
