"""The report: the summary and the verdict, with the lists of scenarios that renderers share."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair
from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    BaselineRun,
    ComparePolicy,
    Comparison,
    NoBaseline,
    ScenarioComparison,
)
from ci_agent_eval.analysis.instruction_changes import (
    InstructionsChange,
    find_instruction_changes,
)
from ci_agent_eval.analysis.known_scenarios import (
    collect_ran_scenarios,
    compare_manifest,
    find_restricting_paths,
)
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, LoadedResults
from ci_agent_eval.analysis.summary import (
    ScenarioSummary,
    ScenarioViolation,
    Summary,
    summarize_results,
)
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.base import SCHEMA_VERSION, SchemaVersion
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import FindingKind, MissingShards
from ci_agent_eval.contract.scenario_manifest import ScenarioManifest
from ci_agent_eval.gate.decision import decide_verdict, find_required_share, is_passing
from ci_agent_eval.gate.model import GatePolicy, Judgement, Verdict
from ci_agent_eval.gate.waivers import apply_quarantine

_CUT_SHORT: frozenset[FindingKind] = frozenset(
    {"no_results", "interrupted", "stopped", "collection_error", "install_failed"}
)
"""Findings after which scenarios are missing because the run did not come to them."""


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
        """Whether it is an evaluation that does not gate."""
        return self.scenario.mode == "evaluation" and self.judgement.gate == "advisory"

    @property
    def is_over_budget(self) -> bool:
        """Whether it exceeds a hard budget."""
        return any(one.violation.hard for one in self.scenario.violations)


@dataclass(frozen=True, slots=True)
class Report:
    """The report that is rendered and published; `verdict.json` is its JSON."""

    summary: Summary
    verdict: Verdict
    schema_version: SchemaVersion = SCHEMA_VERSION
    comparison: Comparison | NoBaseline | None = None
    """None: no baseline was requested."""
    commit: str | None = None
    """Full SHA of the head commit of the results; None: unknown."""
    title: str | None = None
    """First words of the headline; None: the default."""
    pairs: tuple[BehaviourPair, ...] = ()
    """What the agent did before and now, in examples of failing scenarios."""
    instruction_changes: tuple[InstructionsChange, ...] = ()
    """Changed instructions of agents and descriptions of tools."""

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.verdict.conclusion == "success"

    def judged_scenarios(self) -> Iterator[JudgedScenario]:
        """Yield every scenario with its judgement, by scenario id and agent."""
        for scenario, judgement in zip(
            self.summary.scenarios, self.verdict.judgements, strict=True
        ):
            yield JudgedScenario(scenario, judgement)

    @property
    def required_scenarios(self) -> tuple[JudgedScenario, ...]:
        """The scenarios that gate."""
        return tuple(item for item in self.judged_scenarios() if item.judgement.gate == "required")

    @property
    def advisory_scenarios(self) -> tuple[JudgedScenario, ...]:
        """The advisory scenarios without evaluations and quarantined scenarios."""
        advisory = (item for item in self.judged_scenarios() if item.judgement.gate == "advisory")
        return tuple(
            item for item in advisory if not item.only_measures and not item.scenario.in_quarantine
        )

    @property
    def quarantined_scenarios(self) -> tuple[JudgedScenario, ...]:
        """The scenarios with a quarantine entry, expired or not."""
        return tuple(
            item for item in self.judged_scenarios() if item.scenario.quarantine is not None
        )

    @property
    def evaluations(self) -> tuple[JudgedScenario, ...]:
        """The scenarios that are evaluations, whether they gate or not."""
        return tuple(item for item in self.judged_scenarios() if item.scenario.mode == "evaluation")

    @property
    def misses_thresholds(self) -> bool:
        """Whether the evaluations miss a threshold of the suite."""
        return any(reason.kind == "evaluation" for reason in self.verdict.reasons)

    def list_violations(self) -> Iterator[tuple[ScenarioSummary, ScenarioViolation]]:
        """Yield every budget violation with its scenario."""
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
    """Summarize the results, compare them with the baseline, and decide the verdict.

    Quarantined scenarios and acknowledged comparison findings do not gate.
    Raises InputError if there is a baseline and NumPy is not installed.
    """
    summary = summarize_results(loaded, suite=suite, budgets=budgets)
    if manifest is not None:
        summary = _add_manifest_comparison(summary, loaded, manifest, quarantine)
    summary = apply_quarantine(summary, quarantine)
    found: Comparison | NoBaseline | None = baseline if isinstance(baseline, NoBaseline) else None
    if isinstance(baseline, Baseline):
        found = _compare_with_baseline(
            summary,
            loaded,
            baseline,
            policy,
            (compare_policy or ComparePolicy())._replace(
                increases=policy.increases,
                evaluations_gate=policy.are_evaluations_limited,
            ),
        )
    verdict = decide_verdict(summary, policy, found, acknowledged)
    base = baseline.runs[0].episodes if isinstance(baseline, Baseline) and baseline.runs else ()
    return Report(
        summary=summary,
        verdict=verdict,
        comparison=found,
        instruction_changes=find_instruction_changes(loaded.episodes, base),
    )


def _compare_with_baseline(
    summary: Summary,
    loaded: LoadedResults,
    baseline: Baseline,
    policy: GatePolicy,
    compare_policy: ComparePolicy,
) -> Comparison:
    """Compare with the baseline; where it is worse, use the confirmation, if there is one."""
    # The statistics are not worth their start-up time to a report without a baseline.
    from ci_agent_eval.analysis.comparison.compare import compare_runs  # noqa: PLC0415 - see above
    from ci_agent_eval.analysis.comparison.confirmation import (  # noqa: PLC0415 - see above
        apply_confirmation,
    )

    compare = functools.partial(
        compare_runs,
        is_passing=lambda scenario: is_passing(scenario, policy),
        required_share=lambda scenario: find_required_share(scenario, policy),
    )
    baseline = _leave_out_scenarios(baseline, frozenset(summary.left_out))
    found = compare(summary, loaded.episodes, baseline, policy=compare_policy)
    if _is_cut_short(summary):
        found = found._replace(scenarios=tuple(map(_excuse_vanished, found.scenarios)))
    if loaded.confirmation is None or not compare_policy.confirm:
        return found

    def compare_sides(base: Sequence[EpisodeRecord], head: Sequence[EpisodeRecord]) -> Comparison:
        again = LoadedResults(episodes=tuple(head))
        return compare(
            summarize_results(again, budgets=SuiteBudgets()),
            head,
            Baseline(baseline.label, (BaselineRun(tuple(base)),)),
            policy=compare_policy._replace(interleaved=True),
        )

    return apply_confirmation(found, loaded.confirmation, compare_sides)


def _is_cut_short(summary: Summary) -> bool:
    """Say whether a part of the suite left no results, so that its scenarios did not vanish."""
    return any(
        finding.blocking
        and (finding.kind in _CUT_SHORT or isinstance(finding.message, MissingShards))
        for finding in summary.findings
    )


def _excuse_vanished(scenario: ScenarioComparison) -> ScenarioComparison:
    """Return a scenario that vanished, or lost cases, as one that the run did not come to."""
    change = "not_run" if scenario.change == "vanished" else scenario.change
    return scenario._replace(change=change, vanished_cases=())


def _leave_out_scenarios(baseline: Baseline, scenarios: frozenset[str]) -> Baseline:
    """Return the baseline without scenarios that did not run, as a change has not affected them."""
    if not scenarios:
        return baseline
    runs = (
        run._replace(episodes=tuple(e for e in run.episodes if e.scenario_id not in scenarios))
        for run in baseline.runs
    )
    return baseline._replace(runs=tuple(runs))


def _add_manifest_comparison(
    summary: Summary,
    loaded: LoadedResults,
    manifest: ScenarioManifest,
    quarantine: tuple[WaiverStatus, ...],
) -> Summary:
    """Add the comparison with the manifest to the summary, unless it is of one shard.

    Paths of the command line restrict a run if the manifest has scenarios outside of them.
    """
    if summary.shard is not None:
        return summary
    ran = collect_ran_scenarios(loaded.episodes)
    known = compare_manifest(manifest, ran, loaded.sessions, quarantine)
    if any(isinstance(finding.message, MissingShards) for finding in summary.findings):
        known = known._replace(missing=())
    paths = find_restricting_paths(manifest, loaded.sessions)
    return replace(summary, known=known, restrictions=(*summary.restrictions, *paths))
