"""The evaluation report of everything that was loaded, merged and without secrets."""

from __future__ import annotations

from collections.abc import Iterable

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.evaluation import EvaluationReport, evaluation_report, evaluations

_MARK = '"mode":"evaluation"'
"""What the canonical line of every evaluation holds; few other lines do."""


def report_of_lines(lines: Iterable[str]) -> EvaluationReport | None:
    """Fold the canonical lines of episodes; None where none of them is an evaluation."""
    episodes = (Episode.model_validate_json(line) for line in lines if _MARK in line)
    found = evaluations(episodes)
    return evaluation_report(found) if found else None
