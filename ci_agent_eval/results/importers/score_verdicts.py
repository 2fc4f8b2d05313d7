"""Which scores say pass or fail, for tools that know no verdict of their own.

A score of which every value in the file is 0 or 1 (or true, false, correct, incorrect) is a
verdict; any other is a figure, and informs. What lacks a verdict that others in the file have
was not judged to its end, and what has none at all was not judged: an error, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.stops import AGENT_STOPS
from ci_agent_eval.results.importers.values import as_number


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One score of one case."""

    name: str
    value: float
    reason: str | None = None


def find_verdict_names(cases: Iterable[Sequence[CaseScore]]) -> tuple[str, ...]:
    """Return the names of the scores that are verdicts, sorted."""
    values: dict[str, set[float]] = {}
    for scores in cases:
        for score in scores:
            values.setdefault(score.name, set()).add(score.value)
    return tuple(sorted(name for name, found in values.items() if found <= {0.0, 1.0}))


def build_judged_fields(scores: Sequence[CaseScore], verdicts: Sequence[str]) -> dict[str, Any]:
    """Return the fields of an episode that its scores decide."""
    found = {score.name for score in scores}
    missing = [name for name in verdicts if name not in found]
    fields: dict[str, Any] = {
        "assertions": [
            {"name": s.name, "passed": s.value == 1, "score": s.value, "reason": s.reason}
            for s in scores
            if s.name in verdicts
        ],
        "scores": [
            {"name": s.name, "value": s.value, "reason": s.reason}
            for s in scores
            if s.name not in verdicts
        ],
        "outcome": "passed",
    }
    if not found & set(verdicts) or missing:
        fields |= {"outcome": "error", "reason": _explain_unjudged(missing)}
    return fields


def _explain_unjudged(missing: Sequence[str]) -> str:
    if not missing:
        return "it was not judged: no score of it says pass or fail"
    return f"it was not judged to its end: it has no score {', '.join(map(repr, missing))}"


def parse_score(name: str, value: object, reason: str | None = None) -> CaseScore | None:
    """Return a score; None for a value that is no number."""
    figure = float(value) if isinstance(value, bool) else as_number(value)
    return None if figure is None else CaseScore(name, float(figure), reason)


def reasons(fields: Mapping[str, Any]) -> str | None:
    """Return why an episode did not pass, from its failed assertions; None where none failed."""
    failed = [a for a in fields.get("assertions", ()) if not a["passed"]]
    return "; ".join(str(a.get("reason") or a["name"]) for a in failed) or None


def build_stop_fields(reason: str | None) -> dict[str, Any]:
    """Return the fields of an episode that say why its run stopped.

    The outcome stays the tool's: it knew of the limit when it judged the run.
    """
    return {"stop_reason": reason, "allowed_stops": [reason] if reason in AGENT_STOPS else []}
