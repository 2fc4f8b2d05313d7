"""Explain for each scenario of a suite why it would run, or be carried over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.app.pipeline import Job, find_baseline
from ci_agent_eval.app.selection import build_selection
from ci_agent_eval.contract.results import ScenarioListing
from ci_agent_eval.contract.run_plan import RunPlan
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.dependencies.document import unpack_dependencies
from ci_agent_eval.dependencies.environment import hash_variable, is_always_read
from ci_agent_eval.dependencies.model import Reached
from ci_agent_eval.dependencies.selection.model import FullRun, Selection
from ci_agent_eval.render.selection import describe_full_run, describe_selection_reason
from ci_agent_eval.results.baselines.request import EarlierRun
from ci_agent_eval.runner import SuiteCommand, list_scenarios


@dataclass(frozen=True, slots=True)
class ScenarioExplanation:
    """Whether a scenario would run, and why."""

    scenario_id: str
    is_selected: bool
    text: str


@dataclass(frozen=True, slots=True)
class SelectionExplanation:
    """The explanation of each collected scenario."""

    full_run: FullRun | None
    scenarios: tuple[ScenarioExplanation, ...]


def explain_selection(
    job: Job,
    *,
    paths: Sequence[str],
    pytest_args: Sequence[str],
    python: str,
    emit: Callable[[str], None],
) -> SelectionExplanation:
    """Collect the suite, and explain its selection. Raises InputError."""
    settings, affected = job.settings, replace(build_selection(job), carries=True)
    base = find_baseline(job, "lines")
    latest = None if base is None else base.latest
    selection, plan = affected.explain(base), affected.plan_run(base)
    command = SuiteCommand(
        report_dir=job.folder,
        paths=tuple(paths),
        pytest_args=pytest_args,
        suite_paths=settings.paths,
        suite_args=settings.pytest_args,
        python=python,
        cwd=job.root,
        plan=plan,
    )
    listing = list_scenarios(command, environ=job.environ, emit=emit)
    found = tuple(_explain_scenarios(listing, selection, plan, latest, job.environ))
    return SelectionExplanation(selection.full_run, found)


def _explain_scenarios(
    listing: ScenarioListing,
    selection: Selection,
    plan: RunPlan,
    latest: EarlierRun | None,
    environ: Mapping[str, str],
) -> Iterator[ScenarioExplanation]:
    carried = {one.scenario_id for one in listing.session.carried}
    reasons = {one.scenario_id: one.reason for one in selection.selected}
    variables = {one.scenario_id: one.variables for one in plan.unchanged}
    collected = {one.scenario_id for one in listing.scenarios} | carried
    for name in sorted(collected):
        if name in carried and latest is not None:
            yield ScenarioExplanation(name, False, _describe_unchanged(name, latest))
        elif selection.full_run is not None:
            yield ScenarioExplanation(name, True, describe_full_run(selection.full_run))
        elif name in reasons:
            yield ScenarioExplanation(name, True, describe_selection_reason(reasons[name]))
        elif name in variables:
            text = _describe_environment(variables[name], plan, environ)
            yield ScenarioExplanation(name, True, text)
        else:
            yield ScenarioExplanation(name, True, describe_selection_reason("new"))


def _describe_environment(names: Sequence[str], plan: RunPlan, environ: Mapping[str, str]) -> str:
    for name in names:
        if plan.variables.get(name) != hash_variable(name, environ.get(name)):
            return f"the environment variable {name} has another value"
    for name in environ:
        if is_always_read(name) and name not in plan.variables:
            return f"the environment variable {name} is new"
    return describe_full_run(FullRun("environment"))


def _describe_unchanged(name: str, latest: EarlierRun) -> str:
    found = Reached()
    for document in latest.dependencies:
        found |= unpack_dependencies(document).find_dependencies(name) or Reached()
    counts = (
        pluralize(len(found.functions), "function"),
        pluralize(len(found.files | found.modules), "file"),
        pluralize(len(found.variables), "variable"),
    )
    commit = (latest.commit or "")[:7]
    return f"nothing that it depends on changed since {commit}: {', '.join(counts)}"
