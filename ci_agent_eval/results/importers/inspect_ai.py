"""Import inspect_ai evaluation logs, version 2, as JSON; `.eval` archives are converted first.

https://inspect.aisi.org.uk/eval-logs.html (EvalLog, EvalSample, Score). Each sample of each
epoch is an episode. inspect_ai has no verdicts on samples: see `score_verdicts`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.episodes import (
    MAX_LINE_BYTES,
    ParsedEpisode,
    ReadingRules,
    import_episodes,
)
from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.score_verdicts import (
    build_score,
    build_stop_fields,
)
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_count,
    as_list,
    as_mapping,
    as_milliseconds,
    as_name,
    as_objects,
    as_text,
    build_usage,
    format_content,
)
from ci_agent_eval.results.json_text import ReadProblem, parse_json
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

InspectSample = Mapping[str, Any]


class InspectAIImporter:
    """Imports an evaluation log."""

    tool = "inspect_ai"
    score_rule: ScoreRule = "binary"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has a log's specification of its task."""
        spec = as_mapping(document.get("eval"))
        return "status" in document and "task" in spec and "model" in spec

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each sample of each epoch, by sample and epoch."""
        if document.get("version") != VERSION:
            shown_version = as_name(document.get("version"))
            yield ImportProblem(f"is of version {shown_version!r}; version {VERSION} is read")
            return
        samples = sorted(as_objects(document.get("samples")), key=_sample_sort_key)
        agent_fields = _build_agent(as_mapping(document.get("eval")))
        for sample in samples:
            yield {
                **agent_fields,
                **_build_identity(sample, document),
                "scores": list(_iterate_scores(sample)),
                **_build_outcome(sample),
                **_build_conversation(sample),
            }
        yield from _check_completeness(document, len(samples))


def drop_unread_keys(sample: InspectSample) -> EpisodeData:
    """Keep only the keys of a sample that are read: its events may be a thousand times longer."""
    kept = {key: sample[key] for key in _SAMPLE_KEYS if key in sample}
    events = [event for event in as_objects(sample.get("events")) if event.get("event") in _EVENTS]
    return kept | {"events": [{key: e[key] for key in _EVENT_KEYS if key in e} for e in events]}


def _sample_sort_key(sample: InspectSample) -> tuple[str, int]:
    return format_content(sample.get("id")), as_count(sample.get("epoch")) or 0


def _build_agent(spec: Mapping[str, Any]) -> EpisodeData:
    """Return the fields for the model and the agent: the solver if there is one, else the model."""
    model = as_text(spec.get("model"))
    solver = as_text(spec.get("solver"))
    agent = f"{solver}, {model}" if solver and model else solver or model
    return {"model": model, "agent": agent}


def _build_identity(sample: InspectSample, document: ToolDocument) -> EpisodeData:
    """Return the fields that identify the episode: task, sample and model, epoch and attempt."""
    spec = as_mapping(document.get("eval"))
    task = as_name(spec.get("task"))
    return {
        "scenario_id": f"{task}/{as_name(sample.get('id'))}",
        "nodeid": f"inspect_ai::{task}[{as_name(_build_agent(spec)['agent'])}]",
        "iteration": as_count(sample.get("epoch")) or 1,
        "attempt": 1 + len(as_list(sample.get("error_retries"))),
    }


def _iterate_scores(sample: InspectSample) -> Iterator[EpisodeData]:
    """Yield the scores of every scorer, one for each value."""
    for scorer, found in sorted(as_mapping(sample.get("scores")).items()):
        score = as_mapping(found)
        value, reason = score.get("value"), as_text(score.get("explanation"))
        parts = {f"{scorer}/{name}": part for name, part in sorted(as_mapping(value).items())}
        for name, part in (parts or {scorer: value}).items():
            graded = _GRADES.get(part, part) if isinstance(part, str) else part
            yield build_score(name, graded, reason)


def _build_outcome(sample: InspectSample) -> EpisodeData:
    """Return the fields for a limit or an error that ended the sample."""
    error = as_mapping(sample.get("error"))
    limit = as_mapping(sample.get("limit"))
    fields: EpisodeData = build_stop_fields(_STOP_REASONS.get(as_name(limit.get("type"))))
    if error:
        # Scores of an incomplete conversation are no verdict.
        reason = as_text(error.get("message")) or "it ended in an error"
        fields |= {"outcome": "error", "reason": reason}
    return fields


def _build_conversation(sample: InspectSample) -> EpisodeData:
    """Return the conversation, with the figures of its turns from the log's events."""
    replies = {}
    calls = {}
    for event in as_objects(sample.get("events")):
        if event.get("event") == "model":
            choice = next(as_objects(as_mapping(event.get("output")).get("choices")), {})
            replies[as_text(as_mapping(choice.get("message")).get("id"))] = event
        elif event.get("event") == "tool":
            calls[as_text(event.get("id"))] = event
    messages = list(as_objects(sample.get("messages")))
    results = {as_text(m.get("tool_call_id")): m for m in messages if m.get("role") == "tool"}
    turns = [
        _build_turn(message, replies.get(as_text(message.get("id")), {}), results, calls)
        for message in messages
        if message.get("role") in _ROLES
    ]
    return {
        "trajectory": {"turns": turns},
        "duration_ms": as_milliseconds(sample.get("total_time")),
    }


def _build_turn(
    message: Mapping[str, Any],
    event: Mapping[str, Any],
    results: Mapping[Any, Mapping[str, Any]],
    timed: Mapping[Any, Mapping[str, Any]],
) -> EpisodeData:
    content = _format_content(message.get("content"))
    if message.get("role") != "assistant":
        return {"role": message["role"], "content": content}
    output = as_mapping(event.get("output"))
    usage = as_mapping(output.get("usage"))
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            _build_call(call, results, timed) for call in as_objects(message.get("tool_calls"))
        ],
        "latency_ms": as_milliseconds(output.get("time")),
        "tokens": _build_usage(usage),
        "cost_usd": as_amount(usage.get("total_cost")),
    }


def _build_usage(usage: Mapping[str, Any]) -> EpisodeData | None:
    """Return the usage of one reply; inspect_ai counts cached tokens separately."""
    cached = as_count(usage.get("input_tokens_cache_read")) or 0
    written = as_count(usage.get("input_tokens_cache_write")) or 0
    uncached = as_count(usage.get("input_tokens"))
    prompt_tokens = None if uncached is None else uncached + cached + written
    return build_usage(prompt_tokens, usage.get("output_tokens"), cached)


def _format_content(content: object) -> str:
    """Return a message's text, each part on a line; parts without text show their type."""
    if not isinstance(content, list):
        return format_content(content)
    parts = (
        as_text(part.get("text")) or f"[{as_name(part.get('type'))}]"
        for part in as_objects(content)
    )
    return "\n".join(parts)


def _build_call(
    call: Mapping[str, Any],
    results: Mapping[Any, Mapping[str, Any]],
    timed: Mapping[Any, Mapping[str, Any]],
) -> EpisodeData:
    key = as_text(call.get("id"))
    result = results.get(key, {})
    error = as_mapping(result.get("error"))
    return {
        "id": key,
        "name": as_text(call.get("function")) or "(no name)",
        "arguments": call.get("arguments"),
        "result": _format_content(result["content"]) if "content" in result and not error else None,
        "error": as_text(error.get("message")),
        "duration_ms": as_milliseconds(timed.get(key, {}).get("working_time")),
    }


def _check_completeness(document: ToolDocument, found: int) -> Iterator[ImportProblem]:
    status = document.get("status")
    if status != "success":
        error = as_text(as_mapping(document.get("error")).get("message"))
        why = f" ({as_name(error)})" if error else ""
        message = f"says its status is {as_name(status)!r}{why}"
        yield ImportProblem(f"{message}; run the evaluation again", "interrupted")
    if document.get("invalidated") is True:
        yield ImportProblem("says that it was invalidated; run the evaluation again", "interrupted")
    expected = as_count(as_mapping(document.get("results")).get("total_samples"))
    if expected is not None and expected > found:
        message = f"counts {expected} samples and holds {found}; log all of them (--log-samples)"
        yield ImportProblem(message, "declared_counts_differ")


_HEADER = PurePosixPath("header.json")
_SAMPLES = "samples"
_LIMITS = ArchiveLimits(members=100_000, member_bytes=MAX_LINE_BYTES)


def read_eval_archive(
    path: Path, rules: ReadingRules
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    """Read the episodes of an `.eval` log, and the problems of the archive."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            files = extract_archive(path, Path(folder), wanted=_is_wanted, limits=_LIMITS)
            document = _build_document(Path(folder), files)
        except (InputError, ValueError, OSError) as error:
            advice = "write it as JSON (inspect log convert --to json)"
            yield ReadProblem(f"{error}; {advice}")
            return
    yield from import_episodes(InspectAIImporter(), rules.redact(document), rules)


def _is_wanted(path: PurePosixPath) -> bool:
    return path == _HEADER or (path.parent.name == _SAMPLES and len(path.parts) == 2)


def _build_document(folder: Path, files: tuple[Path, ...]) -> dict[str, Any]:
    """Build the log as in inspect_ai's own JSON format."""
    header = folder / _HEADER
    if header not in files:
        raise InputError(
            f"it is a zip archive without {_HEADER}: no log of inspect_ai, or of a run that "
            "did not end"
        )
    samples = [drop_unread_keys(_parse_file(file)) for file in files if file != header]
    return {**_parse_file(header), "samples": samples}


def _parse_file(file: Path) -> dict[str, Any]:
    with open_regular(file) as opened:
        value = parse_json(opened.read())
    if not isinstance(value, dict):
        raise InputError(f"{file.name}: it is not a JSON object")
    return value
