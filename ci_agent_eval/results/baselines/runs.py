"""Load baseline runs on all processors, with all the loader's checks and a few conversations."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    BaselineRun,
    ConversationSample,
    NoBaseline,
)
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, Outcome
from ci_agent_eval.contract.findings import Finding, FindingKind
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    FoundBaseline,
    build_missing_baseline,
)
from ci_agent_eval.results.consistency import describe_other_suite
from ci_agent_eval.results.load import load_results
from ci_agent_eval.results.spool import EpisodeKey, SpoolPosition

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


SHORT_SHA = 7
_ADVICE = "name a baseline of the same suite"

_BLOCKING_KINDS: frozenset[FindingKind] = frozenset({"unreadable_file", "duplicate", "shards"})
"""Findings that make a baseline run unusable."""
_WARNING_KINDS: frozenset[FindingKind] = frozenset(
    {"interrupted", "stopped", "collection_error", "repaired_file"}
)
"""Findings that are reported, but leave a baseline run usable."""


class RunFiles(NamedTuple):
    """The files of one baseline run."""

    patterns: tuple[str, ...]
    """Files or folders, as in `load_results`."""
    label: str
    """The run's name in reports."""


def load_baseline_runs(
    label: str,
    runs: Sequence[RunFiles],
    request: BaselineRequest,
    *,
    root: Path,
    require_complete: bool = False,
) -> FoundBaseline:
    """Load runs, given latest first; runs without episodes are left out.

    `label` is the name of the baseline in reports; the latest run's commit is added to it.
    A run of another suite than the requested one is a blocking finding, and with
    `require_complete` so is an unfinished one.
    """
    loaded: list[BaselineRun] = []
    findings: list[Finding] = []
    read = partial(_read_run, root=root, request=request)
    # Reports show conversations of the latest run only.
    items = [(files, number == 0) for number, files in enumerate(runs)]
    results = map_parallel(read, items, processes=count_processors())
    for files, (found, samples) in zip(runs, results, strict=True):
        findings += _convert_findings(found.findings, require_complete=require_complete)
        findings += _find_foreign_suites(found.suites, request.suite, files.label)
        if found.episodes:
            commit = _find_common(session.commit for session in found.sessions)
            loaded.append(BaselineRun(found.episodes, commit, files.label, found.suites, samples))
    if any(finding.blocking for finding in findings):
        return FoundBaseline(
            NoBaseline("the baseline cannot be read"), tuple(sorted(set(findings)))
        )
    if not loaded:
        return build_missing_baseline(f"{label} holds no episode")
    baseline = Baseline(_append_commit(label, loaded), tuple(loaded))
    return FoundBaseline(baseline, tuple(sorted(set(findings))))


def _find_common(values: Iterable[str | None]) -> str | None:
    """Return the only value besides None; None if there are several."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else None


def _read_run(
    item: tuple[RunFiles, bool], *, root: Path, request: BaselineRequest
) -> tuple[LoadedResults, tuple[ConversationSample, ...]]:
    """Load a run; of the latest also samples of its conversations."""
    files, is_latest = item
    samples = SampleCollector() if is_latest else None
    found = load_results(
        files.patterns,
        (),
        root=root,
        spool=samples,
        redact=request.redact,
        imports=request.imports,
    )
    return found, () if samples is None else samples.list_samples()


def _find_foreign_suites(
    suites: Sequence[str], wanted: str | None, where: str
) -> Iterator[Finding]:
    for other in suites:
        if wanted is not None and other != wanted:
            yield Finding("baseline", where, f"{describe_other_suite(other, wanted)}; {_ADVICE}")


def _convert_findings(findings: Sequence[Finding], *, require_complete: bool) -> list[Finding]:
    """Convert the findings of baseline files; those that its own report showed are left out."""
    return [
        Finding(
            "baseline",
            finding.where,
            finding.message,
            finding.kind in _BLOCKING_KINDS or (require_complete and finding.blocking),
        )
        for finding in findings
        if finding.kind in _BLOCKING_KINDS | _WARNING_KINDS
        and (finding.blocking or finding.kind in _WARNING_KINDS)
    ]


def _append_commit(label: str, runs: Sequence[BaselineRun]) -> str:
    commit = runs[0].commit
    return f"{label}@{commit[:SHORT_SHA]}" if commit and "@" not in label else label


MAX_TOOL_PATHS = 3
"""Maximum number of conversations of a scenario and outcome, each with other tool calls."""
MAX_CONVERSATION = 100_000
"""Maximum characters of a conversation as JSON; of a longer one only the tools are kept."""
MAX_TOTAL = 16_000_000
"""Maximum characters of all conversations; of later ones only the tools are kept."""

_SampleGroup = tuple[str, str | None, Outcome]
_ToolPath = tuple[str, ...]


class _Candidate(NamedTuple):
    key: EpisodeKey
    position: SpoolPosition
    episode: Episode
    turns: str | None


@dataclass(slots=True)
class SampleCollector:
    """An `EpisodeSink` that keeps the first few episodes of each scenario, agent and outcome."""

    _candidates: dict[_SampleGroup, dict[_ToolPath, _Candidate]] = field(default_factory=dict)
    _kept: set[SpoolPosition] = field(default_factory=set)
    _count: int = 0
    _size: int = 0

    def put(self, episode: Episode) -> SpoolPosition:
        """Keep an episode's conversation if it is the first by key with its tool calls."""
        self._count += 1
        position = SpoolPosition(self._count, 0)
        if episode.outcome in ("passed", "failed") and episode.trajectory is not None:
            kind = (episode.scenario_id, episode.agent, episode.outcome)
            self._keep_candidate(self._candidates.setdefault(kind, {}), episode, position)
        return position

    def _keep_candidate(
        self, candidates: dict[_ToolPath, _Candidate], episode: Episode, position: SpoolPosition
    ) -> None:
        tool_path = _list_tool_path(episode)
        if tool_path in candidates and candidates[tool_path].key < episode.key:
            return
        if tool_path not in candidates and len(candidates) >= MAX_TOOL_PATHS:
            last = max(candidates, key=lambda one: candidates[one].key)
            if candidates[last].key < episode.key:
                return
            del candidates[last]
        candidates[tool_path] = _Candidate(
            episode.key, position, episode, self._format_turns(episode)
        )

    def _format_turns(self, episode: Episode) -> str | None:
        assert episode.trajectory is not None, "put() requires one"  # noqa: S101 - see put()
        text = json.dumps(json.loads(canonical_json(episode.trajectory)).get("turns", []))
        if len(text) > MAX_CONVERSATION or self._size + len(text) > MAX_TOTAL:
            return None
        self._size += len(text)
        return text

    def keep(self, _key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark an episode that counts."""
        self._kept.add(position)

    def list_samples(self) -> tuple[ConversationSample, ...]:
        """Return the conversations by scenario, agent, outcome and iteration."""
        candidates = [one for by_path in self._candidates.values() for one in by_path.values()]
        found = [_build_sample(one) for one in candidates if one.position in self._kept]
        return tuple(sorted(found, key=_sample_sort_key))


def _list_tool_path(episode: Episode) -> _ToolPath:
    trajectory = episode.trajectory
    return tuple(call.name for call in trajectory.tool_calls()) if trajectory else ()


def _build_sample(candidate: _Candidate) -> ConversationSample:
    episode = candidate.episode
    return ConversationSample(
        scenario_id=episode.scenario_id,
        agent=episode.agent,
        outcome="passed" if episode.outcome == "passed" else "failed",
        iteration=episode.iteration,
        tools=_list_tool_path(episode),
        turns=candidate.turns,
    )


def _sample_sort_key(sample: ConversationSample) -> tuple[str, str, str, int, Sequence[str]]:
    agent = sample.agent or ""
    return sample.scenario_id, agent, sample.outcome, sample.iteration, sample.tools


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MIN_ITEMS = 3
"""Minimum number of items for which starting processes is worthwhile."""


def count_processors() -> int:
    """Return how many processes may work in parallel; 1 if forking is unsafe.

    Forking is unsafe with other threads: the fork does not copy them, but the locks that they hold
    stay locked. Worker processes do not fork again, either.
    """
    if sys.platform != "linux" or threading.active_count() > 1 or _is_worker_process():
        return 1
    return len(os.sched_getaffinity(0))


def _is_worker_process() -> bool:
    from multiprocessing import current_process  # noqa: PLC0415 - see above

    return current_process().daemon


def map_parallel(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *, processes: int
) -> list[_Result]:
    """Return the result of `work` for each item, in order; results must be picklable.

    If a worker process fails or is killed, its items are processed in this process.
    """
    shares = min(processes, len(items)) if len(items) >= MIN_ITEMS else 1
    started = [_start_process(work, items[share::shares]) for share in range(1, shares)]
    results: dict[int, _Result] = {}
    results |= zip(range(0, len(items), shares), map(work, items[::shares]), strict=True)
    for share, (process, receiver) in enumerate(started, start=1):
        own = items[share::shares]
        found: list[_Result] | None = _receive_results(receiver)
        process.join()
        done = list(map(work, own)) if found is None else found
        results |= zip(range(share, len(items), shares), done, strict=True)
    return [results[place] for place in range(len(items))]


def _start_process(
    work: Callable[[_Item], _Result], items: Sequence[_Item]
) -> tuple[BaseProcess, Connection]:
    from multiprocessing import get_context  # noqa: PLC0415 - see above

    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_run_worker, args=(work, items, sender), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def _run_worker(
    work: Callable[[_Item], _Result], items: Sequence[_Item], sender: Connection
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # the parent's handlers must not run here
    try:
        found = list(map(work, items))
    except Exception:  # noqa: BLE001 - the parent repeats the work and raises it
        return
    sender.send(found)


def _receive_results(receiver: Connection) -> Any:
    with receiver:
        try:
            return receiver.recv()
        except (EOFError, OSError):
            return None
