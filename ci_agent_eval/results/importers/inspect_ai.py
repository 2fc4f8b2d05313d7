"""Import inspect_ai evaluation logs, version 2, as JSON; `.eval` archives are converted first.

https://inspect.aisi.org.uk/eval-logs.html (EvalLog, EvalSample, Score). Each sample of each
epoch is an episode. inspect_ai has no verdicts on samples: see `score_verdicts`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ci_agent_eval.contract.stops import AGENT_STOPS
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.importers.values import (
    EpisodeData,
    Importer,
    ImportProblem,
    Record,
    ToolDocument,
    as_name,
    build_score,
    build_usage,
    check_count,
    format_content,
)
from ci_agent_eval.results.json_text import MAX_LINE_BYTES, parse_json
from ci_agent_eval.storage.archives import ArchiveLimits, extract_archive
from ci_agent_eval.storage.regular_file import open_regular

VERSION = 2

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partial, incorrect, no answer: as in `value_to_float` of inspect_ai."""

_STOP_REASONS = {
    "message": "max_turns",
    "turn": "max_turns",
    "token": "token_limit",
    "cost": "cost_limit",
    "time": "timeout",
    "working": "timeout",
    "operator": "cancelled",
}
"""Our stop reasons for the limits that end a sample."""

_ROLES = ("user", "assistant", "system")
_EVENTS = ("model", "tool")
_EVENT_KEYS = ("event", "id", "output", "working_time")
_SAMPLE_KEYS = (
    "id",
    "epoch",
    "error",
    "error_retries",
    "limit",
    "messages",
    "scores",
    "total_time",
)


def _can_import(document: ToolDocument) -> bool:
    """Return whether the document has a log's specification of its task."""
    spec = document.get("eval")
    return "status" in document and isinstance(spec, dict) and spec.keys() >= {"task", "model"}


def _iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
    """Yield an episode for each sample of each epoch, by sample and epoch."""
    log = Record(document)
    if log.get("version") != VERSION:
        yield ImportProblem(f"has version {log.name('version')!r}; version {VERSION} is read")
        return
    samples = sorted(log.records("samples"), key=_sample_sort_key)
    for sample in samples:
        yield {
            **_build_identity(sample, log.at("eval")),
            "scores": list(_iterate_scores(sample)),
            **_build_outcome(sample),
            "trajectory": {"turns": _SampleTurns(sample).build()},
            "duration_ms": sample.milliseconds("total_time"),
        }
    yield from _check_completeness(log, len(samples))


IMPORTER = Importer("inspect_ai", "binary", _can_import, _iterate_episodes)


def _sample_sort_key(sample: Record) -> tuple[str, int]:
    return sample.shown("id"), sample.count("epoch") or 0


def _build_identity(sample: Record, spec: Record) -> EpisodeData:
    """Return the fields that identify the episode: task, sample, agent, epoch and attempt.

    The agent is the solver with its model if there is one, else the model.
    """
    task, model, solver = spec.name("task"), spec.text("model"), spec.text("solver")
    agent = f"{solver}, {model}" if solver and model else solver or model
    retries = sample.get("error_retries")
    return {
        "model": model,
        "agent": agent,
        "scenario_id": f"{task}/{sample.name('id')}",
        "nodeid": f"inspect_ai::{task}[{as_name(agent)}]",
        "iteration": sample.count("epoch") or 1,
        "attempt": 1 + (len(retries) if isinstance(retries, list) else 0),
    }


def _iterate_scores(sample: Record) -> Iterator[EpisodeData]:
    """Yield the scores of every scorer, one for each value."""
    for scorer, score in sample.entries("scores"):
        value, reason = score.get("value"), score.text("explanation")
        parts = {f"{scorer}/{name}": part.content for name, part in score.entries("value")}
        for name, part in (parts or {scorer: value}).items():
            graded = _GRADES.get(part, part) if isinstance(part, str) else part
            yield build_score(name, graded, reason)


def _build_outcome(sample: Record) -> EpisodeData:
    """Return the fields for a limit or an error that ended the sample.

    The tool's outcome is kept: the scorers knew of the limit when they judged the run.
    """
    stop = _STOP_REASONS.get(sample.name("limit.type"))
    fields: EpisodeData = {"stop_reason": stop}
    fields["allowed_stops"] = [stop] if stop in AGENT_STOPS else []
    if isinstance(error := sample.get("error"), dict) and error:
        # Scores of an incomplete conversation are not a verdict.
        reason = sample.text("error.message") or "it ended in an error"
        fields |= {"outcome": "error", "reason": reason}
    return fields


class _SampleTurns:
    """The conversation of a sample, with the figures of its turns from the log's events."""

    def __init__(self, sample: Record) -> None:
        self._messages = sample.records("messages")
        self._replies: dict[str | None, Record] = {}
        self._calls: dict[str | None, Record] = {}
        self._results = {
            message.text("tool_call_id"): message
            for message in self._messages
            if message.get("role") == "tool"
        }
        for event in sample.records("events"):
            if event.get("event") == "model":
                self._replies[event.text("output.choices.0.message.id")] = event
            elif event.get("event") == "tool":
                self._calls[event.text("id")] = event

    def build(self) -> list[EpisodeData]:
        """Return the turns."""
        return [
            self._build_turn(message) for message in self._messages if message.get("role") in _ROLES
        ]

    def _build_turn(self, message: Record) -> EpisodeData:
        turn = {"role": message.get("role"), "content": _format_content(message.get("content"))}
        if message.get("role") != "assistant":
            return turn
        output = self._replies.get(message.text("id"), Record({})).at("output")
        return turn | {
            "tool_calls": [self._build_call(call) for call in message.records("tool_calls")],
            "latency_ms": output.milliseconds("time"),
            "tokens": _build_usage(output.at("usage")),
            "cost_usd": output.amount("usage.total_cost"),
        }

    def _build_call(self, call: Record) -> EpisodeData:
        key = call.text("id")
        result = self._results.get(key, Record({}))
        has_result = "content" in result.content and not result.get("error")
        return {
            "id": key,
            "name": call.text("function") or "(no name)",
            "arguments": call.get("arguments"),
            "result": _format_content(result.get("content")) if has_result else None,
            "error": result.text("error.message"),
            "duration_ms": self._calls.get(key, Record({})).milliseconds("working_time"),
        }


def _build_usage(usage: Record) -> EpisodeData | None:
    """Return the usage of one reply; inspect_ai counts cached tokens separately."""
    cached = usage.count("input_tokens_cache_read") or 0
    written = usage.count("input_tokens_cache_write") or 0
    uncached = usage.count("input_tokens")
    prompt_tokens = None if uncached is None else uncached + cached + written
    return build_usage(prompt_tokens, usage.get("output_tokens"), cached)


def _format_content(content: object) -> str:
    """Return a message's text, each part on a line; parts without text show their type."""
    if not isinstance(content, list):
        return format_content(content)
    parts = Record({"parts": content}).records("parts")
    return "\n".join(part.text("text") or f"[{part.name('type')}]" for part in parts)


def _check_completeness(log: Record, held: int) -> Iterator[ImportProblem]:
    again = "run the evaluation again"
    if log.get("status") != "success":
        why = f" ({log.name('error.message')})" if log.text("error.message") else ""
        message = f"says its status is {log.name('status')!r}{why}; {again}"
        yield ImportProblem(message, "interrupted")
    if log.get("invalidated") is True:
        yield ImportProblem(f"says that it was invalidated; {again}", "interrupted")
    total = log.count("results.total_samples")
    yield from check_count(total, held, "samples", "log all of them (--log-samples)")


_HEADER = PurePosixPath("header.json")
_SAMPLES = "samples"
_LIMITS = ArchiveLimits(members=100_000, member_bytes=MAX_LINE_BYTES)


def read_eval_archive(path: Path) -> dict[str, Any]:
    """Read an `.eval` log as in inspect_ai's own JSON. Raises InputError, ValueError, OSError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = extract_archive(path, folder, wanted=_is_wanted, limits=_LIMITS)
        header = folder / _HEADER
        if header not in files:
            raise InputError(
                f"it is a zip archive without {_HEADER}: not a log of inspect_ai, or one of a run "
                "that did not end"
            )
        samples = [_drop_unread_keys(_parse_file(file)) for file in files if file != header]
        return {**_parse_file(header), "samples": samples}


def _is_wanted(path: PurePosixPath) -> bool:
    return path == _HEADER or (path.parent.name == _SAMPLES and len(path.parts) == 2)


def _drop_unread_keys(sample: Mapping[str, Any]) -> EpisodeData:
    """Keep only the keys of a sample that are read: its events may be a thousand times longer."""
    kept = {key: sample[key] for key in _SAMPLE_KEYS if key in sample}
    events = [one for one in Record(sample).records("events") if one.get("event") in _EVENTS]
    short = [{key: e.content[key] for key in _EVENT_KEYS if key in e.content} for e in events]
    return kept | {"events": short}


def _parse_file(file: Path) -> dict[str, Any]:
    with open_regular(file) as opened:
        value = parse_json(opened.read())
    if not isinstance(value, dict):
        raise InputError(f"{file.name}: it is not a JSON object")
    return value
