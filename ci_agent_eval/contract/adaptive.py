"""Adaptive iterations in files: the plan that a run is given, and why each scenario stopped."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ci_agent_eval.contract.base import FrozenModel, Rate

StopCause = Literal[
    "below_required",
    "reaches_required",
    "regression",
    "no_regression",
    "inconclusive",
    "maximum",
    "not_judged",
    "undemanding",
    "budget",
    "unfinished",
]
"""Why a scenario's adaptive iterations ended.

`inconclusive`: runs of the base differ too much for further iterations to tell; `not_judged`: too
many were errors or skipped; `undemanding`: neither a required pass rate nor a baseline applies;
`budget` and `unfinished`: a budget of the suite, or something else, ended the run first.
"""


class AdaptiveStop(FrozenModel):
    """Why the adaptive iterations of a scenario ended."""

    scenario_id: str = Field(min_length=1)
    agent: str | None = None
    cause: StopCause
    required: Rate | None = Field(default=None, description="required pass rate, if one applies")


class PredictedScenario(FrozenModel):
    """The pass rate that the baseline predicts of a further run, as a beta distribution."""

    scenario_id: str = Field(min_length=1)
    agent: str | None = None
    alpha: Annotated[float, Field(gt=0)]
    beta: Annotated[float, Field(gt=0)]


class AdaptivePlan(FrozenModel):
    """The rates by which a run decides on adaptive iterations; written by `agent-eval run`."""

    min_pass_rate: Rate | None = Field(
        default=1.0, description="of required scenarios without their own; unset: none"
    )
    level: Rate = Field(default=0.025, description="significance level of all scenarios together")
    predicted: tuple[PredictedScenario, ...] = ()
