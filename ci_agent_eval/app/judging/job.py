"""`agent-eval judge`: judge stored results again, and compare the judges with labels."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ci_agent_eval.analysis.judge_agreement import (
    JudgedAssertion,
    JudgedCheck,
    LabelKey,
    TranscriptKey,
    summarize_checks,
)
from ci_agent_eval.app.judging.labels import (
    LabelMatcher,
    compute_transcript_digest,
    load_labels,
    refuse_labelled_template,
    render_label_template,
)
from ci_agent_eval.app.judging.rejudge import (
    RejudgedEpisode,
    Rejudging,
    get_transcript_key,
    is_judgeable,
    load_plan,
)
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import RESULTS_NAME, UNNAMED_SUITE
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.json_text import redact_json
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.spool import EpisodeSpool, write_results
from ci_agent_eval.storage.regular_file import replace_file
from ci_agent_eval.storage.run_folder import ReportFolder

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.session import CassetteMode


TEMPLATE_NAME = "label-template.csv"


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """The options of one `agent-eval judge`."""

    root: Path
    environ: Mapping[str, str]
    checks: Path
    results: tuple[str, ...]
    output: Path
    concurrency: int = 8
    labels: Path | None = None
    cassette_mode: CassetteMode = "off"
    cassettes: Path = Path("cassettes")


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The outcome of judging stored results."""

    checks: tuple[JudgedCheck, ...]
    reasons: tuple[str, ...]
    """Why the command fails; empty: every transcript was judged."""
    transcripts: int
    errors: tuple[str, ...]
    """Why judges gave no verdict, by scenario."""
    cost_usd: float | None
    """Cost of the judges; None: not known for every call."""


class _StoredResults(NamedTuple):
    suite: str
    episodes: Sequence[Episode]
    problems: tuple[str, ...]


class _JudgedResults(NamedTuple):
    rejudged: Sequence[RejudgedEpisode]

    @property
    def judged(self) -> list[JudgedAssertion]:
        return [one for each in self.rejudged for one in each.results]

    def replace_in(self, stored: Sequence[Episode]) -> list[Episode]:
        """Return the stored episodes, the judged ones in their new form."""
        judged = {one.episode.key: one.episode for one in self.rejudged}
        return [judged.get(episode.key, episode) for episode in stored]

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
    labels = () if job.labels is None else load_labels(job.labels)
    folder = ReportFolder(job.output)
    folder.prepare()
    refuse_labelled_template(job.output / TEMPLATE_NAME)
    redactor = Redactor.from_environ(job.environ)
    stored = _load_stored(job.results, job.root, redactor)
    secrets: set[str] = set()
    found = _JudgedResults(asyncio.run(_judge_stored(job, stored, secrets)))
    matched: Mapping[LabelKey, bool] = {}
    if job.labels is not None:
        matcher = LabelMatcher(job.labels, found.judged, found.digests, found.unjudged)
        matched = matcher.match_all(labels)
    redactor = redactor.with_secrets(secrets)
    report = _build_report(stored, found, matched)
    # Errors of models are printed, too.
    report = dataclasses.replace(report, errors=tuple(map(redactor.text, report.errors)))
    with folder.hold_lock():
        _write_output(job, stored, found, redactor)
    return report


def _load_stored(patterns: Sequence[str], root: Path, redactor: Redactor) -> _StoredResults:
    """Load the decisive attempt of each stored episode."""
    with EpisodeSpool() as spool:
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
    return _StoredResults(suite, tuple(decisive.values()), problems)


async def _judge_stored(
    job: JudgeJob, stored: _StoredResults, secrets: set[str]
) -> tuple[RejudgedEpisode, ...]:
    store = CassetteStore(job.cassette_mode, Redactor.from_environ(job.environ))
    session = EngineSession(
        environ=job.environ,
        clock=time.perf_counter,
        cassette_mode=job.cassette_mode,
        cassettes=store,
        on_secrets=secrets.update,
    )
    plan = load_plan(job.checks)
    plan.require_used((one.scenario_id for one in stored.episodes), job.checks)
    judgeable = [one for one in stored.episodes if is_judgeable(one)]
    if not judgeable:
        raise InputError(
            "no stored episode passed or failed with a transcript; run the suite again"
        )
    rejudging = Rejudging(
        plan=plan,
        session=session,
        store=store,
        cassettes=job.cassettes,
        concurrency=job.concurrency,
    )
    async with session:
        return await rejudging.judge_all(judgeable)


def _build_report(
    stored: _StoredResults, found: _JudgedResults, labels: Mapping[LabelKey, bool]
) -> JudgeReport:
    errors = tuple(f"{one.episode.scenario_id}: {one.error}" for one in found.rejudged if one.error)
    costs = [one.usage.cost_usd for one in found.rejudged if one.usage is not None]
    return JudgeReport(
        checks=summarize_checks(found.judged, labels),
        reasons=tuple(_list_reasons(stored, len(errors))),
        transcripts=len(found.rejudged),
        errors=errors,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _list_reasons(stored: _StoredResults, failed: int) -> Iterator[str]:
    """Yield why the transcripts, or the stored results, are not whole."""
    if stored.problems:
        yield f"the results are not whole: {'; '.join(stored.problems)}"
    ended = sum(one.outcome == "error" for one in stored.episodes)
    if failed or ended:
        transcripts, episodes = count_noun(failed, "transcript"), count_noun(ended, "episode")
        yield f"{transcripts} without a verdict, and {episodes} that ended in an error"


def _write_output(
    job: JudgeJob, stored: _StoredResults, found: _JudgedResults, redactor: Redactor
) -> None:
    with EpisodeSpool() as spool:
        for judged in found.replace_in(stored.episodes):
            # The answers of judges may have secrets, too.
            value = redact_json(json.loads(canonical_json(judged)), redactor.text)
            episode = Episode.model_validate(value)
            spool.keep(episode.key, spool.put(episode))
        is_complete = not stored.problems
        write_results(job.output / RESULTS_NAME, stored.suite, spool, complete=is_complete)
    with replace_file(job.output / TEMPLATE_NAME) as file:
        file.write(redactor.text(render_label_template(found.judged, found.digests)))
