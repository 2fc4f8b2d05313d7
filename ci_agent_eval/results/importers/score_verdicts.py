"""Derive verdicts from scores, for tools without verdicts.

A score with only the values 0 and 1 (or true, false, correct, incorrect) in the whole file is a
verdict; any other score is information. A case that lacks some or all of the file's verdicts was
not fully judged: an error, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Return the sorted names of the scores that are verdicts."""
    values: dict[str, set[float]] = {}
    for scores in cases:
        for score in scores:
            values.setdefault(score.name, set()).add(score.value)
    return tuple(sorted(name for name, found in values.items() if found <= {0.0, 1.0}))


def build_judged_fields(scores: Sequence[CaseScore], verdicts: Sequence[str]) -> dict[str, Any]:
    """Build the fields of an episode that depend on its scores."""
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


def parse_case_score(name: str, value: object, reason: str | None = None) -> CaseScore | None:
    """Parse a score; None if the value is no number."""
    figure = float(value) if isinstance(value, bool) else as_number(value)
    return None if figure is None else CaseScore(name, float(figure), reason)


def build_stop_fields(reason: str | None) -> dict[str, Any]:
    """Build the stop reason fields of an episode.

    The tool's outcome is kept: the tool knew of the limit when it judged the run.
    """
    return {"stop_reason": reason, "allowed_stops": [reason] if reason in AGENT_STOPS else []}
