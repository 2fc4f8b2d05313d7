"""The evidence that a passing episode needs: agent activity and an assertion.

Episodes of our recorder require both (`evidence: required`). An episode without the field,
written by hand or by another tool, needs any one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Evidence = Literal["required", "none"]
"""`required`: a completed turn or tool call, and an assertion. `none`: neither is needed."""

EvidencePart = Literal["turn", "assertion"]
"""`turn`: a completed turn or a tool call."""

EVIDENCE_PARTS: tuple[EvidencePart, ...] = ("turn", "assertion")

_LACKS: dict[EvidencePart, str] = {
    "turn": "no completed turn or tool call",
    "assertion": "no assertion",
}
_REMEDIES: dict[EvidencePart, str] = {
    "turn": "record what the agent did (`with episode.turn(...) as turn:`)",
    "assertion": "assert something about it (asserts of helper modules count if conftest.py names "
    "them in `pytest.register_assert_rewrite`)",
}
_OPT_OUT = ', or mark the test `episode(evidence="none")`'


def list_missing_parts(missing: Sequence[EvidencePart]) -> str:
    """Return the missing parts as text, joined by "and"."""
    return " and ".join(_LACKS[part] for part in missing)


def describe_missing_evidence(missing: Sequence[EvidencePart]) -> str:
    """Return the reason of an episode without evidence, and the remedy."""
    remedies = " and ".join(_REMEDIES[part] for part in missing)
    return f"no evidence: {list_missing_parts(missing)}; {remedies}{_OPT_OUT}"


def describe_unseen(count: str) -> str:
    """Return the warning about agents whose requests to models were not seen."""
    return (
        f"no request to a model was seen in {count}, so that neither budgets nor cassettes work; "
        "give the agent's processes the variables of the fixture `model_environment`"
    )
