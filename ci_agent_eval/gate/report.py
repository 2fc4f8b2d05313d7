"""The report: summary and verdict together, and the views of them that renderers share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.comparison.model import Baseline, ComparePolicy, Comparison, NoBaseline
from ci_agent_eval.analysis.known_scenarios import (
    collect_ran_scenarios,
    compare_manifest,
    find_restricting_paths,
)
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.analysis.summary import (
    ScenarioSummary,
    ScenarioViolation,
    Summary,
    summarize_results,
)
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.base import SCHEMA_VERSION, SchemaVersion
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.scenario_manifest import ScenarioManifest
from ci_agent_eval.gate import (
    GatePolicy,
    Judgement,
    Verdict,
    decide_verdict,
    find_required_share,
    is_passing,
)
from ci_agent_eval.gate.waivers import apply_quarantine


@dataclass(frozen=True, slots=True)
class JudgedScenario:
    """A scenario with its judgement."""

    scenario: ScenarioSummary
    judgement: Judgement

    @property
    def is_passing(self) -> bool:
        """Whether it reached its required pass rate."""
        return self.judgement.status == "passing"

    @property
    def only_measures(self) -> bool:
        """Whether it is an evaluation of which nothing is required by itself."""
        return self.scenario.mode == "evaluation" and self.judgement.gate == "advisory"


@dataclass(frozen=True, slots=True)
class Report:
    """What is rendered and published; as JSON it is `verdict.json`."""

    summary: Summary
    verdict: Verdict
    schema_version: SchemaVersion = SCHEMA_VERSION
    comparison: Comparison | NoBaseline | None = None
    """None: no baseline was asked for."""
    commit: str | None = None
    """The head commit the results are about, as a full SHA; None where nothing tells."""

    @property
    def passed(self) -> bool:
        """Whether the gate opens."""
        return self.verdict.conclusion == "success"

    def judged_scenarios(self) -> Iterator[JudgedScenario]:
        """Every scenario with its judgement, by scenario id and agent."""
        for scenario, judgement in zip(
            self.summary.scenarios, self.verdict.judgements, strict=True
        ):
            yield JudgedScenario(scenario, judgement)

    @property
    def required(self) -> tuple[JudgedScenario, ...]:
        """The scenarios that gate."""
        return tuple(item for item in self.judged_scenarios() if item.judgement.gate == "required")

    @property
    def advisory(self) -> tuple[JudgedScenario, ...]:
        """The scenarios that only inform by their own will, and are no evaluations."""
        advisory = (item for item in self.judged_scenarios() if item.judgement.gate == "advisory")
        return tuple(
            item for item in advisory if not item.only_measures and not item.scenario.in_quarantine
        )

    @property
    def quarantined(self) -> tuple[JudgedScenario, ...]:
        """The scenarios about which a quarantine was agreed, whether it still holds or not."""
        return tuple(
            item for item in self.judged_scenarios() if item.scenario.quarantine is not None
        )

    @property
    def evaluations(self) -> tuple[JudgedScenario, ...]:
        """The scenarios that are evaluations, whether they gate or not."""
        return tuple(item for item in self.judged_scenarios() if item.scenario.mode == "evaluation")

    @property
    def misses_thresholds(self) -> bool:
        """Whether the evaluations together do not reach what the suite requires of them."""
        return any(reason.kind == "evaluation" for reason in self.verdict.reasons)

    def violations(self) -> Iterator[tuple[ScenarioSummary, ScenarioViolation]]:
        """Every budget violation of a scenario."""
        for scenario in self.summary.scenarios:
            for violation in scenario.violations:
                yield scenario, violation


def build_report(
    loaded: LoadedResults,
    *,
    suite: str,
    budgets: SuiteBudgets,
    policy: GatePolicy,
    baseline: Baseline | NoBaseline | None = None,
    compare_policy: ComparePolicy | None = None,
    quarantine: tuple[WaiverStatus, ...] = (),
    acknowledged: tuple[WaiverStatus, ...] = (),
    manifest: ScenarioManifest | None = None,
) -> Report:
    """Fold, compare, judge, and put all of it together.

    Scenarios in quarantine do not gate, nor does what comparing finds and is acknowledged.
    Raises InputError where there is a baseline, and NumPy is not installed.
    """
    summary = summarize_results(loaded, suite=suite, budgets=budgets)
    if manifest is not None:
        summary = _add_manifest_comparison(summary, loaded, manifest, quarantine)
    summary = apply_quarantine(summary, quarantine)
    found: Comparison | NoBaseline | None = None
    if isinstance(baseline, Baseline):
        # The statistics are not worth their start-up time to a report without a baseline.
        from ci_agent_eval.analysis.comparison.compare import (  # noqa: PLC0415 - as said
            compare_runs,
        )

        found = compare_runs(
            summary,
            loaded.episodes,
            baseline,
            is_passing=lambda scenario: is_passing(scenario, policy),
            required_share=lambda scenario: find_required_share(scenario, policy),
            policy=replace(
                compare_policy or ComparePolicy(),
                max_cost_increase=policy.max_cost_increase,
                max_latency_increase=policy.max_latency_increase,
            ),
        )
    else:
        found = baseline
    verdict = decide_verdict(summary, policy, found, acknowledged)
    return Report(summary=summary, verdict=verdict, comparison=found)


def _add_manifest_comparison(
    summary: Summary,
    loaded: LoadedResults,
    manifest: ScenarioManifest,
    quarantine: tuple[WaiverStatus, ...],
) -> Summary:
    """Return the summary with what comparing it with the manifest found; a shard is not compared.

    Paths of the command line restrict a run if the manifest knows scenarios outside of them.
    """
    if summary.shard is not None:
        return summary
    ran = collect_ran_scenarios(loaded.episodes)
    known = compare_manifest(manifest, ran, loaded.sessions, quarantine)
    paths = find_restricting_paths(manifest, loaded.sessions)
    return replace(summary, known=known, restrictions=(*summary.restrictions, *paths))
