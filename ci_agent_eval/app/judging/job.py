"""`agent-eval judge`: judge stored results, analyse the judges, and decide their gate."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ci_agent_eval.analysis.judges.agreement import JudgeCalibration
from ci_agent_eval.analysis.judges.judged_checks import (
    JudgedCheckSummary,
    RepeatedAssertion,
    TranscriptKey,
    calibrate_checks,
    summarize_checks,
)
from ci_agent_eval.analysis.judges.statistics_library import require_statsmodels
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.app.judging.labels import (
    LabelMatcher,
    compute_transcript_digest,
    load_labels,
    refuse_labelled_template,
    render_label_template,
)
from ci_agent_eval.app.judging.plan import load_plan
from ci_agent_eval.app.judging.rejudge import (
    RejudgedEpisode,
    Rejudging,
    get_transcript_key,
    is_judgeable,
)
from ci_agent_eval.app.judging.report_reasons import list_report_reasons
from ci_agent_eval.config.settings import Settings
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import RESULTS_NAME, UNNAMED_SUITE
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.judge_gate import (
    JudgeGate,
    JudgePolicy,
    MissingVerdicts,
    ReportReason,
    decide_judge_gate,
)
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from ci_agent_eval.storage.regular_file import replace_file
from ci_agent_eval.storage.run_folder import ReportFolder

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.session import CassetteMode

REPORT_NAME = "judge-report.json"
TEMPLATE_NAME = "label-template.csv"


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """The options of one `agent-eval judge`."""

    root: Path
    environ: Mapping[str, str]
    checks: Path
    results: tuple[str, ...]
    output: Path
    repeats: int = 1
    concurrency: int = 8
    labels: Path | None = None
    labelled: tuple[str, ...] = ()
    """Results that the labels are about; empty: the judged ones."""
    policy: JudgePolicy = JudgePolicy()  # noqa: RUF009 - frozen
    settings: Settings = field(default_factory=Settings)
    """Their gate is the report's, which applies as well."""
    quarantine: tuple[WaiverStatus, ...] = ()
    cassette_mode: CassetteMode = "off"
    cassettes: Path = Path("cassettes")
    keeps_stored: bool = True


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The outcome of judging stored results."""

    checks: tuple[JudgedCheckSummary, ...]
    gate: JudgeGate
    transcripts: int
    missing: MissingVerdicts
    errors: tuple[str, ...]
    """Why judges gave no verdict, by scenario."""
    cost_usd: float | None
    """Cost of the judges; None: not known for every call."""


class _StoredResults(NamedTuple):
    suite: str
    episodes: Sequence[Episode]
    problems: tuple[str, ...]
    loaded: LoadedResults


class _JudgedResults(NamedTuple):
    rejudged: Sequence[RejudgedEpisode]
    problems: tuple[str, ...]

    @property
    def repeated(self) -> list[RepeatedAssertion]:
        return [one for each in self.rejudged for one in each.results]

    @property
    def unjudged(self) -> frozenset[TranscriptKey]:
        return frozenset(get_transcript_key(one.episode) for one in self.rejudged if one.error)

    @property
    def digests(self) -> Mapping[TranscriptKey, str]:
        return {
            get_transcript_key(one.episode): compute_transcript_digest(one.episode)
            for one in self.rejudged
        }


def judge_results(job: JudgeJob) -> JudgeReport:
    """Judge stored results and write the output folder. Raises InputError."""
    require_statsmodels()
    labels = () if job.labels is None else load_labels(job.labels)
    folder = ReportFolder(job.output)
    folder.prepare()
    refuse_labelled_template(job.output / TEMPLATE_NAME)
    redactor = Redactor.from_environ(job.environ)
    stored = _load_stored(job.results, job.root, redactor)
    labelled = _load_stored(job.labelled, job.root, redactor) if job.labelled else None
    secrets: set[str] = set()
    found, calibrating = asyncio.run(_judge_all(job, stored, labelled, secrets))
    calibrations: Mapping[str, JudgeCalibration] = {}
    if job.labels is not None:
        base = found if calibrating is None else calibrating
        matcher = LabelMatcher(job.labels, base.repeated, base.digests, base.unjudged)
        calibrations = calibrate_checks(base.repeated, matcher.match_all(labels))
    redactor = redactor.with_secrets(secrets)
    report = _build_report(job, stored, found, calibrating, calibrations)
    # Errors of models are printed, too.
    report = dataclasses.replace(report, errors=tuple(map(redactor.text, report.errors)))
    with folder.hold_lock():
        _write_output(job, stored, found, report, redactor)
    return report


def _load_stored(patterns: Sequence[str], root: Path, redactor: Redactor) -> _StoredResults:
    """Load the decisive attempt of each stored episode."""
    with EpisodeSpool(redactor.text) as spool:
        loaded = load_results(patterns, (), root=root, spool=spool, redact=redactor.text)
        episodes = [Episode.model_validate_json(line) for line in spool.iterate_lines()]
    if not episodes:
        raise InputError(f"{', '.join(patterns)}: holds no episode to judge")
    # Sorted by key, so that the last attempt of an iteration replaces the earlier ones.
    decisive = {get_transcript_key(one): one for one in episodes}
    problems = tuple(
        f"{one.where}: {describe_finding(one)}" if one.where else describe_finding(one)
        for one in loaded.findings
        if one.blocking
    )
    suite = loaded.suites[0] if len(loaded.suites) == 1 else UNNAMED_SUITE
    return _StoredResults(suite, tuple(decisive.values()), problems, loaded)


async def _judge_all(
    job: JudgeJob, stored: _StoredResults, labelled: _StoredResults | None, secrets: set[str]
) -> tuple[_JudgedResults, _JudgedResults | None]:
    redactor = Redactor.from_environ(job.environ)
    store = CassetteStore(job.cassette_mode, redactor)
    session = EngineSession(
        environ=job.environ,
        clock=time.perf_counter,
        cassette_mode=job.cassette_mode,
        cassettes=store,
        on_secrets=secrets.update,
    )
    plan = load_plan(job.checks)
    plan.require_used((one.scenario_id for one in stored.episodes), job.checks)
    rejudging = Rejudging(
        plan=plan,
        session=session,
        store=store,
        cassettes=job.cassettes,
        repeats=job.repeats,
        concurrency=job.concurrency,
        keeps_stored=job.keeps_stored,
    )
    async with session:
        found = await _judge_stored(rejudging, stored)
        if labelled is None:
            return found, None
        apart = dataclasses.replace(rejudging, cassettes=job.cassettes / "labelled")
        return found, await _judge_stored(apart, labelled)


async def _judge_stored(rejudging: Rejudging, stored: _StoredResults) -> _JudgedResults:
    judgeable = [one for one in stored.episodes if is_judgeable(one)]
    if not judgeable:
        raise InputError(
            "no stored episode passed or failed with a transcript; run the suite again"
        )
    return _JudgedResults(await rejudging.judge_all(judgeable), stored.problems)


def _build_report(
    job: JudgeJob,
    stored: _StoredResults,
    found: _JudgedResults,
    calibrating: _JudgedResults | None,
    calibrations: Mapping[str, JudgeCalibration],
) -> JudgeReport:
    repeated = found.repeated
    names = {one.name for one in repeated if one.is_judged}
    level = job.policy.compute_level(len(names))
    checks = summarize_checks(repeated, calibrations, level)
    both = [found] if calibrating is None else [found, calibrating]
    judged = [one for each in both for one in each.rejudged]
    errors = tuple(f"{one.episode.scenario_id}: {one.error}" for one in judged if one.error)
    ended = sum(one.outcome == "error" for one in stored.episodes)
    missing = MissingVerdicts(len(errors), ended)
    costs = [one.usage.cost_usd for one in judged if one.usage is not None]
    problems = [problem for each in both for problem in each.problems]
    reported = tuple(_list_report_reasons(job, stored, found))
    return JudgeReport(
        checks=checks,
        gate=decide_judge_gate(checks, job.policy, missing, problems, reported),
        transcripts=len(found.rejudged),
        missing=missing,
        errors=errors,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _list_report_reasons(
    job: JudgeJob, stored: _StoredResults, found: _JudgedResults
) -> Iterator[ReportReason]:
    """Yield the reasons of the report's gate.

    With a required score, verdicts of models count only by it: single ones are too noisy. Where the
    agreement with labels of the judged results is required, they are about the judge.
    """
    is_calibration = job.policy.has_requirement and not job.labelled
    without_verdicts = job.policy.limits_scores or is_calibration
    judged = {
        one.episode.key: one.without_verdicts if without_verdicts else one.episode
        for one in found.rejudged
    }
    episodes = [judged.get(episode.key, episode) for episode in stored.episodes]
    return list_report_reasons(stored.loaded, episodes, job.settings, job.quarantine)


def _write_output(
    job: JudgeJob,
    stored: _StoredResults,
    found: _JudgedResults,
    report: JudgeReport,
    redactor: Redactor,
) -> None:
    judged = {one.episode.key: one.episode for one in found.rejudged}
    with EpisodeSpool(redactor.text) as spool:
        for episode in stored.episodes:
            written = judged.get(episode.key, episode)
            spool.keep(written.key, spool.put(written))
        is_complete = not stored.problems
        write_results(job.output / RESULTS_NAME, stored.suite, spool, complete=is_complete)
    document = redactor.value(dataclasses.asdict(report))
    with replace_file(job.output / REPORT_NAME) as file:
        file.write(f"{json.dumps(document, indent=2, sort_keys=True)}\n")
    with replace_file(job.output / TEMPLATE_NAME) as file:
        file.write(redactor.text(render_label_template(found.repeated, found.digests)))
