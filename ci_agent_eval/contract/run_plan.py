"""The plan of a run: the scenarios that are carried over, and those that run first."""

from __future__ import annotations

from pydantic import Field

from ci_agent_eval.contract.base import FrozenModel


class UnchangedScenario(FrozenModel):
    """A scenario whose earlier result is carried over, if these variables are as they were."""

    scenario_id: str = Field(min_length=1)
    variables: tuple[str, ...] = ()


class RunPlan(FrozenModel):
    """The selection and order of the collected episodes; all of them by default."""

    unchanged: tuple[UnchangedScenario, ...] = Field(
        default=(), description="scenarios whose earlier results are carried over"
    )
    environment: str | None = Field(
        default=None,
        description="hash of Python, platform and distributions; in another environment, nothing "
        "is carried over",
    )
    variables: dict[str, str | None] = Field(
        default_factory=dict, description="hash of each environment variable in the earlier run"
    )
    first: tuple[str, ...] = Field(
        default=(), description="scenarios to run after the new ones: changed, or failed before"
    )
    known: tuple[str, ...] = Field(
        default=(), description="scenarios of the earlier run; any other one is new and runs first"
    )
