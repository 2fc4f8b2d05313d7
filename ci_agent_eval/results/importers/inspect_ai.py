"""inspect_ai: an evaluation log, version 2, as JSON; an `.eval` archive is made one before.

https://inspect.aisi.org.uk/eval-logs.html (EvalLog, EvalSample, Score). Each sample of each
epoch is an episode. inspect_ai knows no verdict of a sample: see `verdicts` for what is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import (
    amount,
    count,
    mapping,
    name_of,
    objects,
    seconds_as_ms,
    sequence,
    shown,
    text,
    tokens,
)
from ci_agent_eval.results.importers.verdicts import Scored, judged, scored, stopped, verdict_names

VERSION = 2

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partial, incorrect, no answer: as `value_to_float` of inspect_ai reads them."""

_STOPS = {
    "message": "max_turns",
    "turn": "max_turns",
    "token": "token_limit",
    "cost": "cost_limit",
    "time": "timeout",
    "working": "timeout",
    "operator": "cancelled",
}
"""Limits at which a sample ends, as our reasons to stop."""

_ROLES = ("user", "assistant", "system")
_EVENTS = ("model", "tool")
_KEPT_OF_EVENT = ("event", "id", "output", "working_time")
_KEPT = (
    "id",
    "epoch",
    "error",
    "error_retries",
    "limit",
    "messages",
    "scores",
    "total_time",
)

Sample = Mapping[str, Any]


class InspectAI:
    """Reads an evaluation log."""

    tool = "inspect_ai"

    def recognizes(self, document: Document) -> bool:
        """Say so by the log's specification of its task."""
        spec = mapping(document.get("eval"))
        return "status" in document and "task" in spec and "model" in spec

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each sample of each epoch, by sample and epoch."""
        if document.get("version") != VERSION:
            shown_version = name_of(document.get("version"))
            yield Complaint(f"is of version {shown_version!r}; version {VERSION} is read")
            return
        samples = sorted(objects(document.get("samples")), key=_order)
        scores = [list(_scores(sample)) for sample in samples]
        ended = [s for s, sample in zip(scores, samples, strict=True) if not sample.get("error")]
        verdicts = verdict_names(ended)
        who = _who(mapping(document.get("eval")))
        for sample, found in zip(samples, scores, strict=True):
            fields = judged(found, verdicts)
            yield {**who, **_place(sample, document), **fields, **_ended(sample), **_taken(sample)}
        yield from _unfinished(document, len(samples))


def slim(sample: Sample) -> Draft:
    """Keep of a sample what is read of it: its events may be a thousand times as long."""
    kept = {key: sample[key] for key in _KEPT if key in sample}
    events = [event for event in objects(sample.get("events")) if event.get("event") in _EVENTS]
    return kept | {"events": [{key: e[key] for key in _KEPT_OF_EVENT if key in e} for e in events]}


def _order(sample: Sample) -> tuple[str, int]:
    return shown(sample.get("id")), count(sample.get("epoch")) or 0


def _who(spec: Mapping[str, Any]) -> Draft:
    """Return the model, and the agent: the solver where the run named one, else the model."""
    model = text(spec.get("model"))
    solver = text(spec.get("solver"))
    agent = f"{solver}, {model}" if solver and model else solver or model
    return {"model": model, "agent": agent}


def _place(sample: Sample, document: Document) -> Draft:
    """Name the scenario by task and sample; logs of several models are told apart by the model."""
    spec = mapping(document.get("eval"))
    task = name_of(spec.get("task"))
    return {
        "scenario_id": f"{task}/{name_of(sample.get('id'))}",
        "nodeid": f"inspect_ai::{task}[{name_of(_who(spec)['agent'])}]",
        "iteration": count(sample.get("epoch")) or 1,
        "attempt": 1 + len(sequence(sample.get("error_retries"))),
    }


def _scores(sample: Sample) -> Iterator[Scored]:
    """Yield the scores of every scorer; of one with several values each by itself."""
    for scorer, found in sorted(mapping(sample.get("scores")).items()):
        score = mapping(found)
        value, reason = score.get("value"), text(score.get("explanation"))
        parts = {f"{scorer}/{name}": part for name, part in sorted(mapping(value).items())}
        for name, part in (parts or {scorer: value}).items():
            graded = _GRADES.get(part, part) if isinstance(part, str) else part
            if (one := scored(name, graded, reason)) is not None:
                yield one


def _ended(sample: Sample) -> Draft:
    """Return what ended the sample, where it was not its agent."""
    error = mapping(sample.get("error"))
    limit = mapping(sample.get("limit"))
    fields: Draft = stopped(_STOPS.get(name_of(limit.get("type"))))
    if error:
        # What its scorers said of half a conversation is not a judgement.
        reason = text(error.get("message")) or "it ended in an error"
        fields |= {"outcome": "error", "reason": reason, "assertions": []}
    return fields


def _taken(sample: Sample) -> Draft:
    """Return the conversation, with what the log's events say of its turns."""
    replies = {}
    calls = {}
    for event in objects(sample.get("events")):
        if event.get("event") == "model":
            choice = next(objects(mapping(event.get("output")).get("choices")), {})
            replies[text(mapping(choice.get("message")).get("id"))] = event
        elif event.get("event") == "tool":
            calls[text(event.get("id"))] = event
    messages = list(objects(sample.get("messages")))
    results = {text(m.get("tool_call_id")): m for m in messages if m.get("role") == "tool"}
    turns = [
        _turn(message, replies.get(text(message.get("id")), {}), results, calls)
        for message in messages
        if message.get("role") in _ROLES
    ]
    return {
        "trajectory": {"turns": turns},
        "duration_ms": seconds_as_ms(sample.get("total_time")),
    }


def _turn(
    message: Mapping[str, Any],
    event: Mapping[str, Any],
    results: Mapping[Any, Mapping[str, Any]],
    timed: Mapping[Any, Mapping[str, Any]],
) -> Draft:
    content = _content(message.get("content"))
    if message.get("role") != "assistant":
        return {"role": message["role"], "content": content}
    output = mapping(event.get("output"))
    usage = mapping(output.get("usage"))
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [_call(call, results, timed) for call in objects(message.get("tool_calls"))],
        "latency_ms": seconds_as_ms(output.get("time")),
        "tokens": _tokens(usage),
        "cost_usd": amount(usage.get("total_cost")),
    }


def _tokens(usage: Mapping[str, Any]) -> Draft | None:
    """Return the usage of one reply; inspect_ai counts what came from a cache apart."""
    cached = count(usage.get("input_tokens_cache_read")) or 0
    written = count(usage.get("input_tokens_cache_write")) or 0
    given = count(usage.get("input_tokens"))
    whole = None if given is None else given + cached + written
    return tokens(whole, usage.get("output_tokens"), cached)


def _content(content: object) -> str:
    """Return a message's text; of parts each on a line, those that are no text by their kind."""
    if not isinstance(content, list):
        return shown(content)
    parts = (
        text(part.get("text")) or f"[{name_of(part.get('type'))}]" for part in objects(content)
    )
    return "\n".join(parts)


def _call(
    call: Mapping[str, Any],
    results: Mapping[Any, Mapping[str, Any]],
    timed: Mapping[Any, Mapping[str, Any]],
) -> Draft:
    key = text(call.get("id"))
    result = results.get(key, {})
    error = mapping(result.get("error"))
    return {
        "id": key,
        "name": text(call.get("function")) or "(no name)",
        "arguments": call.get("arguments"),
        "result": _content(result["content"]) if "content" in result and not error else None,
        "error": text(error.get("message")),
        "duration_ms": seconds_as_ms(timed.get(key, {}).get("working_time")),
    }


def _unfinished(document: Document, found: int) -> Iterator[Complaint]:
    status = document.get("status")
    if status != "success":
        error = text(mapping(document.get("error")).get("message"))
        why = f" ({name_of(error)})" if error else ""
        told = f"says its status is {name_of(status)!r}{why}"
        yield Complaint(f"{told}; run the evaluation again", "interrupted")
    if document.get("invalidated") is True:
        yield Complaint("says that it was invalidated; run the evaluation again", "interrupted")
    expected = count(mapping(document.get("results")).get("total_samples"))
    if expected is not None and expected > found:
        message = f"counts {expected} samples and holds {found}; log all of them (--log-samples)"
        yield Complaint(message, "declared_counts_differ")
