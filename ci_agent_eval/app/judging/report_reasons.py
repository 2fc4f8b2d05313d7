"""Apply the rules of `agent-eval report` to episodes that were judged again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ci_agent_eval.analysis.loaded_results import LoadedResults, build_episode_record
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.config.settings import Settings
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.gate.model import Reason, ReasonKind
from ci_agent_eval.gate.report import build_report
from ci_agent_eval.render.sentences import describe_reason

# Errors and doubtful results are reasons of `agent-eval judge` already.
_KINDS: frozenset[ReasonKind] = frozenset(
    {"scenario", "suite_pass_rate", "skipped", "incomplete", "evaluation", "budget"}
)


def list_report_reasons(
    loaded: LoadedResults,
    episodes: Sequence[Episode],
    settings: Settings,
    quarantine: tuple[WaiverStatus, ...],
) -> Iterator[str]:
    """Yield why `agent-eval report` would fail `episodes` in place of the loaded ones.

    Budgets of the whole suite are left out: they limit a run, and judging again is none.
    """
    changed = replace(loaded, episodes=tuple(map(build_episode_record, episodes)))
    report = build_report(
        changed,
        suite=settings.suite,
        budgets=SuiteBudgets(),
        policy=settings.policy,
        quarantine=quarantine,
    )
    scenarios = {
        (one.scenario.scenario_id, one.scenario.agent): one for one in report.judged_scenarios()
    }
    for reason in report.verdict.reasons:
        found = scenarios.get((reason.scenario_id or "", reason.agent))
        if reason.kind not in _KINDS or (found and found.judgement.status == "errored"):
            continue
        failures = found.scenario.failures if found and reason.kind == "scenario" else ()
        yield _describe(reason, tuple(dict.fromkeys(one.assertion.name for one in failures)))


def _describe(reason: Reason, failed: Sequence[str]) -> str:
    name = "" if reason.scenario_id is None else f"{reason.scenario_id}: "
    agent = "" if reason.agent is None else f" (agent {reason.agent})"
    names = f"; failed: {', '.join(failed)}" if failed else ""
    return f"{name}{describe_reason(reason)}{agent}{names}"
