"""The whole report: load results, judge them, write the report."""

from __future__ import annotations

import functools
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ci_agent_eval.analysis.behaviour_pairs import (
    BehaviourPair,
    EpisodeExchanges,
    StateSummary,
    choose_pair,
    parse_conversation,
)
from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    Comparison,
    ConversationSample,
    NoBaseline,
)
from ci_agent_eval.analysis.failure_causes import AffectedScenario, find_failure_cause
from ci_agent_eval.analysis.iteration_counts import collect_left_out
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, LoadedResults, assign_agents
from ci_agent_eval.analysis.waivers import ReportWaivers
from ci_agent_eval.app.report_folder import (
    write_evaluation,
    write_page,
    write_report_folder,
)
from ci_agent_eval.config.options import Settings
from ci_agent_eval.config.settings import load_import_policy
from ci_agent_eval.contract.affected import CHANGE_EVENTS
from ci_agent_eval.contract.evaluation import build_report_from_lines
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.results import RESULTS_NAME, SESSION_NAME
from ci_agent_eval.contract.scenario_manifest import ScenarioManifest
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.failure_groups import ScenarioKey, group_failures, index_comparison
from ci_agent_eval.gate.report import JudgedScenario, Report, build_report
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.report_view import ReportView, build_report_view
from ci_agent_eval.results.consistency import describe_other_suite
from ci_agent_eval.results.json_text import Redact
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from ci_agent_eval.storage.run_folder import ReportFolder

if TYPE_CHECKING:
    from ci_agent_eval.results.baselines.request import (
        BaselineSource,
        FoundBaseline,
    )


_MAX_NAMED = 20
"""Most left-out scenarios that the finding names; verdict.json has all."""

Echo = Callable[[str], None]
"""Writes one line to standard output."""


def _find_nothing(_: Report) -> tuple[Finding, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Job:
    """One job: settings, root folder, environment, and links."""

    settings: Settings
    root: Path
    """The folder that patterns and paths are relative to."""
    environ: Mapping[str, str]
    links: Links = Links()  # noqa: RUF009 - frozen
    sources: Mapping[str, BaselineSource] = field(default_factory=dict)
    """Baseline sources other than files, by the value of the setting."""
    waivers: ReportWaivers = ReportWaivers()  # noqa: RUF009 - frozen
    """Quarantine and acknowledged regressions."""
    manifest: ScenarioManifest | None = None
    """Scenarios that a run must contain; None without a manifest."""
    partial: Literal["fail", "warn"] = "warn"
    """Effect of a run that is restricted to a part of its suite."""
    started_by: str | None = None
    """Event that started the workflow; None: there is none."""
    find_extra: Callable[[Report], Iterable[Finding]] = _find_nothing
    """Returns additional findings for the judged report."""

    @property
    def folder(self) -> Path:
        """The report folder."""
        return self.root / self.settings.report_dir


def report_files(
    job: Job, *, results: Sequence[str], junit: Sequence[str], root: Path | None = None
) -> Report:
    """Load existing result files, judge them, and write the report. Raises InputError.

    `root` is the base of file names, if it differs from the job's root.
    """
    folder = ReportFolder(job.folder)
    folder.prepare()
    with folder.hold_lock():
        return write_report(
            job,
            functools.partial(find_baseline, job),
            lambda spool, redact: load_results(
                results,
                junit,
                root=root or job.root,
                repository=job.root,
                spool=spool,
                redact=redact,
                passed_on_retry=job.settings.gate.passed_on_retry,
                imports=load_import_policy(job.root, job.settings),
            ),
        )


def compare_files(job: Job, *, base: str, results: Sequence[str]) -> Report:
    """Compare result files with a baseline and judge them; write nothing. Raises InputError."""
    compare = job.settings.compare.model_copy(update={"baseline": base})
    settings = job.settings.model_copy(update={"compare": compare})
    # Results are compared with each other, not with the suite's manifest.
    job = replace(job, settings=settings, manifest=None)
    redact = Redactor.from_environ(job.environ).text
    imports = load_import_policy(job.root, job.settings)
    loaded = load_results(results, (), root=job.root, redact=redact, imports=imports)
    found = find_baseline(job, is_own=False)
    if found is not None and isinstance(found.baseline, NoBaseline) and not found.findings:
        raise InputError(f"{base}: {found.baseline.reason}; name what a run has left")
    named = loaded.suites or _list_suites(found)
    for other in _list_suites(found) if named else ():
        if other != named[0]:
            raise InputError(
                f"{base}: {describe_other_suite(other, named[0])}; compare runs of one"
            )
    loaded = _with_foreign_suites(loaded, named[0]) if named else loaded
    return _judge_results(job, loaded, found)


def _list_suites(found: FoundBaseline | None) -> tuple[str, ...]:
    """Return the suites named by a baseline's runs."""
    if found is None or isinstance(found.baseline, NoBaseline):
        return ()
    return tuple(sorted({suite for run in found.baseline.runs for suite in run.suites}))


def find_baseline(job: Job, *, is_own: bool = True) -> FoundBaseline | None:
    """Load the configured baseline; None if none is configured.

    `is_own` says that the report folder belongs to the compared run. Raises InputError for an
    invalid setting.
    """
    compare = job.settings.compare
    if compare.baseline is None:
        return None
    # Baselines are not worth their start-up time to a report that is compared with none.
    from ci_agent_eval.results.baselines.load import load_baseline  # noqa: PLC0415 - see above
    from ci_agent_eval.results.baselines.request import BaselineRequest  # noqa: PLC0415 - see above

    request = BaselineRequest(
        compare.baseline,
        job.root,
        runs=compare.runs,
        redact=Redactor.from_environ(job.environ).text,
        search_path=job.environ.get("PATH", os.defpath),
        # `compare` takes two sets of results of any suite, not of the configured one.
        suite=job.settings.suite if is_own else None,
        own=job.folder if is_own else None,
        imports=load_import_policy(job.root, job.settings),
    )
    return load_baseline(request, job.sources)


def _judge_results(job: Job, loaded: LoadedResults, base: FoundBaseline | None) -> Report:
    baseline = None if base is None else _check_baseline(base.baseline, loaded)
    findings = loaded.findings if base is None else (*loaded.findings, *base.findings)
    findings = (*findings, *_list_left_out(job, loaded))
    settings = _settings_for(job, loaded)
    build = functools.partial(
        build_report,
        suite=settings.suite,
        budgets=settings.budgets,
        policy=replace(settings.policy, partial=job.partial),
        baseline=baseline,
        compare_policy=settings.compare.policy,
        quarantine=job.waivers.quarantine,
        acknowledged=job.waivers.acknowledged,
        manifest=job.manifest,
    )
    report = build(replace(loaded, findings=findings))
    extra = tuple(job.find_extra(report))
    return build(replace(loaded, findings=(*findings, *extra))) if extra else report


def _list_left_out(job: Job, loaded: LoadedResults) -> Iterator[Finding]:
    """Yield a finding with the left-out scenarios; it gates unless the settings allow it."""
    names = collect_left_out(loaded)
    if not names:
        return
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    number = pluralize(len(names), "scenario")
    message = (
        f"{number} did not run, not affected (declared): {', '.join(names[:_MAX_NAMED])}{more}"
    )
    if job.started_by not in CHANGE_EVENTS:
        message += f"; the event {job.started_by} is not about a pull request: run all of them"
        yield Finding("left_out", "", message)
    elif not job.settings.affected:
        message += "; run all of them, or set affected = true in the configuration file"
        yield Finding("left_out", "", message)
    else:
        yield Finding("left_out", "", message, blocking=False)


def _settings_for(job: Job, loaded: LoadedResults) -> Settings:
    """Return the settings for judging; a shard has no requirements of the whole suite."""
    is_part = any(session.shard is not None for session in loaded.sessions)
    return job.settings.for_shard() if is_part else job.settings


def _check_baseline(
    baseline: Baseline | NoBaseline, loaded: LoadedResults
) -> Baseline | NoBaseline:
    """Return the baseline, or the reason why this run cannot be compared with it."""
    if not loaded.episodes:
        return NoBaseline("there is no episode to compare")
    for session in loaded.sessions:
        if session.shard is not None:
            shard = f"this is shard {session.shard.index} of {session.shard.count}"
            return NoBaseline(f"{shard}; the report of all of them is compared")
    return baseline


def write_report(
    job: Job,
    find_base: Callable[[], FoundBaseline | None],
    read: Callable[[EpisodeSpool, Redact], LoadedResults],
) -> Report:
    """Judge the results that `read` loads, and write the report folder. Raises InputError."""
    redactor = Redactor.from_environ(job.environ)
    with EpisodeSpool() as spool:
        loaded = _with_foreign_suites(read(spool, redactor.text), job.settings.suite)
        report = report_loaded(job, loaded, spool.iterate_lines, find_base())
        _write_evaluations(job, loaded, spool)
        if not _has_own_results(job.folder):
            complete = not any(
                finding.blocking and finding.kind != "baseline"
                for finding in report.summary.findings
            )
            write_results(job.folder / RESULTS_NAME, job.settings.suite, spool, complete=complete)
    return report


def _write_evaluations(job: Job, loaded: LoadedResults, spool: EpisodeSpool) -> None:
    """Write the loaded evaluations; without any, a run's own file is kept."""
    if any(facts.evaluation for facts in loaded.episodes):
        write_evaluation(job.folder, build_report_from_lines(spool.iterate_lines()))
    elif not _has_own_results(job.folder):
        write_evaluation(job.folder, None)


def report_loaded(
    job: Job,
    loaded: LoadedResults,
    read_lines: Callable[[], Iterable[str]] = tuple,
    base: FoundBaseline | None = None,
) -> Report:
    """Judge loaded results and write the report folder.

    `read_lines` returns the canonical JSON of the loaded episodes, in their order.
    """
    loaded = _with_foreign_commits(loaded, job.links.sha)
    report = _build_report(job, loaded, read_lines(), base)
    view = build_report_view(report, job.links)
    write_report_folder(report, view, job.folder, job.settings.formats)
    write_page(job.folder, _render_page(job, view, loaded, read_lines(), _get_samples(base)))
    return report


def _build_report(
    job: Job, loaded: LoadedResults, lines: Iterable[str], base: FoundBaseline | None
) -> Report:
    report = _judge_results(job, loaded, base)
    pairs = find_pairs(report, loaded.episodes, lines, _get_samples(base))
    return replace(report, commit=job.links.sha, title=job.settings.title, pairs=pairs)


def _with_foreign_commits(loaded: LoadedResults, commit: str | None) -> LoadedResults:
    """Add a finding for each other commit that the results name."""
    others = {session.commit for session in loaded.sessions} - {None, commit}
    if commit is None or not others:
        return loaded
    message = f"these results are about another commit, this run is about {commit}; run them anew"
    found = [Finding("disagreement", f"commit {other}", message) for other in others]
    return replace(loaded, findings=tuple(sorted({*loaded.findings, *found})))


def _with_foreign_suites(loaded: LoadedResults, suite: str) -> LoadedResults:
    """Add a finding for each other suite that the results name."""
    others = [other for other in loaded.suites if other != suite]
    advice = "give each suite a report of its own, or set `suite` to the results' own"
    found = [
        Finding("disagreement", f"suite {other}", f"{describe_other_suite(other, suite)}; {advice}")
        for other in others
    ]
    return replace(loaded, findings=tuple(sorted({*loaded.findings, *found})))


def _get_samples(base: FoundBaseline | None) -> Sequence[ConversationSample]:
    """Return the conversations of the baseline's latest run, which alone has any."""
    found = None if base is None else base.baseline
    return found.runs[0].samples if isinstance(found, Baseline) and found.runs else ()


def _render_page(
    job: Job,
    view: ReportView,
    loaded: LoadedResults,
    lines: Iterable[str],
    samples: Sequence[ConversationSample],
) -> Iterator[str]:
    # Jinja2 is not worth its start-up time to a command that writes no page.
    from ci_agent_eval.render.html.page import render_html  # noqa: PLC0415 - see above

    episodes = tuple(assign_agents(loaded.episodes))
    budgets = _settings_for(job, loaded).budgets
    return render_html(view, episodes, lines, budgets=budgets, samples=samples)


def _has_own_results(folder: Path) -> bool:
    """Say whether a run wrote its results to this folder; these are kept."""
    return (folder / SESSION_NAME).exists() and (folder / RESULTS_NAME).exists()


MOST_CAUSES = 10
"""Causes that get an example; reports show the others in one line each at most."""
MOST_TRIED = 5
"""Scenarios of a cause in which a pair is looked for."""
MOST_ITERATIONS = 10
"""Iterations of a scenario that are read."""

IsWanted = Callable[[EpisodeRecord], bool]


def find_pairs(
    report: Report,
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
    samples: Sequence[ConversationSample],
) -> tuple[BehaviourPair, ...]:
    """Return an example for each cause, and one for each scenario over a hard budget.

    `lines` are the JSON of the episodes, in their order; `samples` are of the baseline.
    """
    groups = [
        [_key(one) for one in group.scenarios[:MOST_TRIED]]
        for group in group_failures(report)[:MOST_CAUSES]
    ]
    over = [_item_key(item) for item in report.judged_scenarios() if item.is_over_budget]
    groups += [[key] for key in over[:MOST_CAUSES]]
    items = {_item_key(item): item for item in report.judged_scenarios()}
    wanted = {key: items[key] for group in groups for key in group}
    now = _read_conversations(wanted, episodes, lines)
    chooser = _PairChooser(report, now, samples)
    found: dict[ScenarioKey, BehaviourPair] = {}
    for group in groups:
        if pair := chooser.choose(group):
            found.setdefault((pair.scenario_id, pair.agent), pair)
    return tuple(found.values())


def _key(one: AffectedScenario) -> ScenarioKey:
    return one.scenario.scenario_id, one.scenario.agent


def _item_key(item: JudgedScenario) -> ScenarioKey:
    return item.scenario.scenario_id, item.scenario.agent


def _read_conversations(
    wanted: Mapping[ScenarioKey, JudgedScenario],
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
) -> Mapping[ScenarioKey, Sequence[EpisodeExchanges]]:
    """Read the first iterations of each scenario that show its failure."""
    found: dict[ScenarioKey, list[EpisodeExchanges]] = defaultdict(list)
    if not wanted:
        return found
    tests = {key: _describe_wanted(item) for key, item in wanted.items()}
    for record, line in zip(assign_agents(episodes), lines, strict=False):
        key = (record.scenario_id, record.agent or None)
        if key in tests and len(found[key]) < MOST_ITERATIONS and tests[key](record):
            episode = json.loads(line)
            turns = episode.get("trajectory", {}).get("turns", ())
            states = _summarize_states(episode.get("states", ()))
            faults = episode.get("faults", ())
            found[key].append(parse_conversation(record.iteration, turns, states, faults))
    return found


def _summarize_states(states: Sequence[Mapping[str, Any]]) -> tuple[StateSummary, ...]:
    if not states:
        return ()
    from ci_agent_eval.analysis.behaviour_pairs import summarize_states  # noqa: PLC0415 - rarely needed

    return summarize_states(states)


def _describe_wanted(item: JudgedScenario) -> IsWanted:
    """Return a test whether an iteration failed by the scenario's cause, or broke a budget."""
    cause = find_failure_cause(item.scenario)
    if cause is None:
        return lambda record: any(violation.hard for violation in record.violations)
    if not item.scenario.failures:
        return lambda record: record.outcome == "failed"
    return lambda record: any(one.name == cause.name for one in record.failed_assertions)


class _PairChooser:
    """Chooses the example of a group of scenarios."""

    def __init__(
        self,
        report: Report,
        now: Mapping[ScenarioKey, Sequence[EpisodeExchanges]],
        samples: Sequence[ConversationSample],
    ) -> None:
        self._compared = index_comparison(report)
        self._now = now
        self._samples: Mapping[str, list[ConversationSample]] = defaultdict(list)
        for sample in samples:
            if sample.outcome == "passed" and sample.turns is not None:
                self._samples[sample.scenario_id].append(sample)
        found = report.comparison
        renames = found.tool_renames if isinstance(found, Comparison) else ()
        self._renames = {rename.after: rename.before for rename in renames}

    def choose(self, group: Sequence[ScenarioKey]) -> BehaviourPair | None:
        """Return the first complete pair, else the first one without a baseline."""
        pairs = [pair for pair in map(self._build, group) if pair is not None]
        complete = (pair for pair in pairs if pair.before is not None)
        return next(complete, next(iter(pairs), None))

    def _build(self, key: ScenarioKey) -> BehaviourPair | None:
        before = [
            parse_conversation(sample.iteration, json.loads(sample.turns))
            for sample in self._find_samples(key)
            if sample.turns is not None
        ]
        return choose_pair(key, self._now.get(key, ()), before, self._renames)

    def _find_samples(self, key: ScenarioKey) -> Iterator[ConversationSample]:
        compared = self._compared.get(key)
        if compared is None or compared.change in {"new", "not_comparable"}:
            return
        samples = self._samples[compared.renamed_from or key[0]]
        own = [sample for sample in samples if (sample.agent or None) == (key[1] or None)]
        # An agent that is called otherwise now is the same where it is the only one.
        yield from own or samples
