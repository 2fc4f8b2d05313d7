"""Acknowledgement: what comparing found and a team accepts is a warning until a day. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.comparison.remarks import Remark, RemarkKind
from ci_agent_eval.analysis.waivers import Agreement, covering

ACCEPTABLE: frozenset[RemarkKind] = frozenset({"regression", "undecided", "vanished", "downgraded"})
"""What may be acknowledged of a scenario: nothing that it shows without a baseline."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an acknowledgement does to a remark."""

    message: str
    """The remark with what was agreed about it."""
    holds: bool
    """Whether the remark does not gate; False: the day is over."""


def accepted(remark: Remark, agreed: Sequence[Agreement]) -> Accepted | None:
    """Return what was agreed about a remark; None where nothing was."""
    scenario = remark.scenario
    if scenario is None or remark.kind not in ACCEPTABLE:
        return None
    found = covering(agreed, scenario.scenario_id, scenario.agent)
    if found is None:
        return None
    if found.expired:
        ended = f"it was acknowledged until {found.until}, which is over ({found.reason})"
        return Accepted(f"{remark.message}; {ended}", holds=False)
    told = f"acknowledged: {found.reason}, until {found.until}"
    return Accepted(f"{remark.message}; {told}", holds=True)


def needless(
    remarked: Collection[ScenarioComparison], agreed: Sequence[Agreement]
) -> Iterator[str]:
    """Yield a sentence for each acknowledgement of nothing that comparing found."""
    names = [(scenario.scenario_id, scenario.agent) for scenario in remarked]
    for one in agreed:
        if not any(one.covers(*name) for name in names):
            agent = "" if one.agent is None else f" by agent {one.agent!r}"
            yield (
                f"acknowledgement of {one.scenario!r}{agent}: comparing found nothing of it to "
                "accept; take it out"
            )
