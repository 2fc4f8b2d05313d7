"""pydantic-evals: an `EvaluationReport` as `EvaluationReportAdapter.dump_json` writes it.

Each case is an episode; an evaluator's true or false is an assertion, its number a score. A task
that raised, and an evaluator that did, is an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import (
    amount,
    mapping,
    name_of,
    number,
    objects,
    seconds_as_ms,
    shown,
    text,
    tokens,
)

Case = Mapping[str, Any]


class PydanticEvals:
    """Reads the JSON of an `EvaluationReport`."""

    tool = "pydantic-evals"

    def recognizes(self, document: Document) -> bool:
        """Say so by the lists of cases and failures, and the name beside them."""
        return isinstance(document.get("cases"), list) and "failures" in document

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each case, those first whose task came to an end."""
        data_set = text(document.get("dataset_name"))
        agent = text(document.get("name"))
        seen: dict[str, int] = defaultdict(int)
        for case, fields in _cases(document):
            name = _name(case)
            seen[name] += 1
            yield {
                "scenario_id": f"{name_of(data_set)}/{name}" if data_set else name,
                "agent": agent,
                # Reports of several experiments go together; this tells their episodes apart.
                "nodeid": f"pydantic-evals::{name_of(data_set)}[{name_of(agent)}]",
                "iteration": seen[name],
                **fields,
            }
        yield from _broken(document)


def _cases(document: Document) -> Iterator[tuple[Case, Draft]]:
    for case in sorted(objects(document.get("cases")), key=_order):
        yield case, _ended(case)
    for failure in sorted(objects(document.get("failures")), key=_order):
        yield failure, _raised(failure)


def _order(case: Case) -> tuple[str, str]:
    return name_of(case.get("name")), shown(case)


def _name(case: Case) -> str:
    """Return the case's own name: of a repeated one it stands apart."""
    name = text(case.get("source_case_name")) or text(case.get("name"))
    return name_of(name or case.get("inputs") or "(no name)")


def _ended(case: Case) -> Draft:
    assertions = list(_assertions(case))
    broken = [
        f"{name_of(failure.get('name'))}: {name_of(failure.get('error_message'))}"
        for failure in objects(case.get("evaluator_failures"))
    ]
    fields: Draft = {
        "outcome": "passed",
        "assertions": assertions,
        "scores": list(_scores(case)),
        "duration_ms": seconds_as_ms(case.get("task_duration")),
        "trajectory": {"turns": [*_asked(case), _answered(case)]},
    }
    if broken:
        return fields | {"outcome": "error", "reason": "; ".join(broken)}
    if not assertions:
        reason = "it was not judged: no evaluator of it says true or false"
        return fields | {"outcome": "error", "reason": reason}
    return fields


def _raised(failure: Case) -> Draft:
    return {
        "outcome": "error",
        "reason": text(failure.get("error_message")),
        "trajectory": {"turns": list(_asked(failure))},
    }


def _assertions(case: Case) -> Iterator[Draft]:
    for name, found in sorted(mapping(case.get("assertions")).items()):
        result = mapping(found)
        yield {
            "name": name,
            "passed": result.get("value") is True,
            "reason": text(result.get("reason")),
        }


def _scores(case: Case) -> Iterator[Draft]:
    for name, found in sorted(mapping(case.get("scores")).items()):
        result = mapping(found)
        if (value := number(result.get("value"))) is not None:
            yield {"name": name, "value": value, "reason": text(result.get("reason"))}


def _asked(case: Case) -> Iterator[Draft]:
    yield {"role": "user", "content": shown(case.get("inputs"))}


def _answered(case: Case) -> Draft:
    """Return the output with the metrics that instrumented agents leave."""
    metrics = mapping(case.get("metrics"))
    return {
        "role": "assistant",
        "content": shown(case.get("output")),
        "latency_ms": seconds_as_ms(case.get("task_duration")),
        "tokens": tokens(metrics.get("input_tokens"), metrics.get("output_tokens")),
        "cost_usd": amount(metrics.get("cost")),
    }


def _broken(document: Document) -> Iterator[Complaint]:
    for failure in objects(document.get("report_evaluator_failures")):
        told = f"{name_of(failure.get('name'))}: {name_of(failure.get('error_message'))}"
        yield Complaint(f"has an evaluator of the whole report that broke ({told})")
