"""`agent-eval run --confirm`: run base and head again in turn, where the head is worse.

Whatever goes wrong ends the confirmation; the file then says why, and every drop stays one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ci_agent_eval.analysis.comparison.confirmation import (
    BLOCKS,
    ITERATIONS,
    MAX_SAMPLE,
    SAMPLE_ITERATIONS,
)
from ci_agent_eval.analysis.comparison.model import Comparison, ScenarioComparison, SuiteChange
from ci_agent_eval.analysis.loaded_results import LoadedResults, build_episode_record
from ci_agent_eval.analysis.summary import Totals, summarize_results
from ci_agent_eval.app.base_checkout import BaseCheckout
from ci_agent_eval.app.install import run_install_commands
from ci_agent_eval.contract.budgets import Budget, SuiteBudgets
from ci_agent_eval.contract.results import (
    RESULTS_NAME,
    SESSION_NAME,
    UNNAMED_SUITE,
    Confirmation,
    ConfirmationRun,
    RepeatedScenario,
    Results,
    Session,
    Side,
)
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.gate.report import Report
from ci_agent_eval.results.confirmation import find_run_problem, hash_file
from ci_agent_eval.runner import RunProgress, SuiteCommand, SuiteRun, run_suite
from ci_agent_eval.storage.regular_file import open_regular

Echo = Callable[[str], None]


def plan_repeats(report: Report) -> tuple[RepeatedScenario, ...]:
    """Return the scenarios to run again; empty if no drop fails the gate.

    They are those that gate by a regression, and for a drop of the suite a sample of all.
    """
    if not isinstance(report.comparison, Comparison):
        return ()
    reasons = report.verdict.reasons
    doubted = {r.scenario_id for r in reasons if r.kind == "regression"}
    drops = [r.message for r in reasons if isinstance(r.message, SuiteChange)]
    sample = {name for drop in drops for name in _draw_sample(report, report.comparison, drop)}
    names = {s.scenario_id: s.renamed_from for s in report.comparison.scenarios}
    return tuple(
        RepeatedScenario(
            scenario_id=name,
            was=was,
            iterations=ITERATIONS if name in doubted else SAMPLE_ITERATIONS,
        )
        for name, was in sorted(names.items())
        if name in doubted or name in sample
    )


def _draw_sample(report: Report, found: Comparison, drop: SuiteChange) -> Sequence[str]:
    """Return scenarios of a measure, in the order of their hashes: the same for the same suite."""
    mode = "strict" if drop.measure == "pass_rate" else "evaluation"
    modes = {s.scenario_id: s.mode for s in report.summary.scenarios}
    names = {
        s.scenario_id
        for s in found.scenarios
        if modes.get(s.scenario_id) == mode and _is_measured(s, drop)
    }
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:MAX_SAMPLE]


def _is_measured(scenario: ScenarioComparison, drop: SuiteChange) -> bool:
    sides = (scenario.before, scenario.after)
    is_judged = all(side is not None and side.judged for side in sides)
    return is_judged and (scenario.required or drop.measure != "pass_rate")


@dataclass(slots=True)
class ConfirmationJob:
    """Runs the blocks, and collects their results."""

    command: SuiteCommand
    """The run to confirm."""
    base: BaseCheckout
    install: Sequence[Sequence[str]]
    environ: Mapping[str, str]
    echo: Echo
    on_progress: Callable[[RunProgress], None]
    spent: Totals
    """The part of the suite's budgets that the run itself used."""
    runs: list[ConfirmationRun] = field(default_factory=list)
    interrupted: SuiteRun | None = None
    """The run that a signal ended."""

    def confirm(self, scenarios: Sequence[RepeatedScenario]) -> Confirmation:
        """Run the blocks of both sides in turn."""
        self.echo(
            f"confirm: {pluralize(len(scenarios), 'scenario')} again, on the base "
            f"{self.base.commit[:7]} and here, in {BLOCKS} blocks"
        )
        ended = self._install_base() or next(self._list_endings(scenarios), None)
        if ended is not None:
            self.echo(f"confirm: {ended}; nothing is confirmed or excused")
        return Confirmation(
            suite=self.command.suite or UNNAMED_SUITE,
            commit=self.command.commit,
            base_commit=self.base.commit,
            results=hash_file(self.command.report_dir / RESULTS_NAME),
            blocks=BLOCKS,
            scenarios=tuple(scenarios),
            ended=ended,
            runs=tuple(self.runs),
        )

    def _install_base(self) -> str | None:
        problem = run_install_commands(
            self.install,
            self.base.python,
            root=self.base.root,
            environ=self.environ,
            echo=self.echo,
        )
        return None if problem is None else f"on the base, {problem.splitlines()[0]}"

    def _list_endings(self, scenarios: Sequence[RepeatedScenario]) -> Iterator[str]:
        """Run all blocks; yield why one could not be used. The next would be a waste."""
        for block in range(1, BLOCKS + 1):
            sides: tuple[Side, ...] = ("base", "head") if block % 2 else ("head", "base")
            for side in sides:
                problem = self._run_side(side, block, scenarios)
                if problem is not None:
                    yield problem

    def _run_side(
        self, side: Side, block: int, scenarios: Sequence[RepeatedScenario]
    ) -> str | None:
        budgets, used_up = self._subtract_spent()
        name = f"block {block}, {side}"
        if used_up is not None:
            return f"{name}: the suite budget {used_up} is used up"
        self.echo(f"confirm: {name}")
        folder = self.base.folder / "runs" / f"{block}-{side}"
        folder.mkdir(parents=True)
        command = self._build_command(side, folder, scenarios)
        done = run_suite(
            replace(command, budgets=budgets),
            environ=self.environ,
            emit=self.echo,
            on_progress=self.on_progress,
        )
        if done.interrupted_by is not None:
            self.interrupted = done
            return f"{name}: it was interrupted"
        if done.usage_error is not None:
            return f"{name}: pytest: {done.usage_error}"
        try:
            run = _read_run(folder, side, block)
        except (OSError, ValueError):  # includes pydantic's ValidationError
            return f"{name}: it left no results"
        self.runs.append(run)
        return find_run_problem(run)

    def _build_command(
        self, side: Side, folder: Path, scenarios: Sequence[RepeatedScenario]
    ) -> SuiteCommand:
        command, own = self.command, self.command.cwd or Path.cwd()
        other = own.resolve() if side == "base" else None
        iterations = {s.scenario_id: s.iterations for s in scenarios}
        if side == "base":
            iterations |= {s.was: s.iterations for s in scenarios if s.was is not None}
            command = replace(
                command,
                cwd=self.base.root,
                python=self.base.python,
                commit=self.base.commit,
                paths=_keep_existing(command.paths, self.base.root),
                suite_paths=_keep_existing(command.suite_paths, self.base.root),
            )
        again = folder.with_suffix(".json")
        document = {"iterations": iterations, "other_checkout": other and str(other)}
        again.write_text(json.dumps(document), encoding="utf-8")
        return replace(command, report_dir=folder, again=again)

    def _subtract_spent(self) -> tuple[SuiteBudgets, str | None]:
        """Return the rest of the hard budgets, and the name of one that is used up."""
        left: dict[str, Budget] = {}
        for kind, budget in self.command.budgets.iter_named():
            used = sum(getattr(totals, kind.total) or 0 for totals in self._list_totals())
            if budget.hard and kind.spent is not None:
                if used >= budget.limit:
                    return SuiteBudgets(), kind.name
                left[kind.name] = budget.model_copy(update={"limit": budget.limit - used})
        return SuiteBudgets(**left), None

    def _list_totals(self) -> Iterator[Totals]:
        yield self.spent
        for run in self.runs:
            loaded = LoadedResults(
                episodes=tuple(map(build_episode_record, run.episodes)), sessions=(run.session,)
            )
            yield summarize_results(loaded, budgets=self.command.budgets).totals


def _keep_existing(paths: Sequence[str], root: Path) -> Sequence[str]:
    """Leave out the paths that the base does not have yet; pytest would refuse them."""
    return [p for p in paths if (root / p.partition("::")[0]).exists()] or paths


def _read_run(folder: Path, side: Side, block: int) -> ConfirmationRun:
    with open_regular(folder / SESSION_NAME) as file:
        session = Session.model_validate_json(file.read())
    with open_regular(folder / RESULTS_NAME) as file:
        episodes = Results.model_validate_json(file.read()).episodes
    return ConfirmationRun(side=side, block=block, session=session, episodes=episodes)
