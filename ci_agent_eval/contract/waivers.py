"""Waivers of a team as written in files: quarantine and acknowledged regressions."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ci_agent_eval.contract.base import KnownKeysModel
from ci_agent_eval.contract.scenario_manifest import quote_toml

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _parse_date(value: Any) -> dt.date:
    """Parse `YYYY-MM-DD` or a TOML date; refuse a time, which would need a time zone."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value} is not a day of the calendar") from None
    raise ValueError('must be a date written as "YYYY-MM-DD"')


Day = Annotated[dt.date, BeforeValidator(_parse_date)]
"""A day in UTC."""

_Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]


_WILD = re.compile(r"\[[^]]*\]|[*?\s]")
"""Wildcards of Python's fnmatch."""


def _refuse_catch_all(pattern: str) -> str:
    """Refuse a pattern of wildcards alone, which would waive every scenario."""
    if not _WILD.sub("", pattern):
        raise ValueError("matches every scenario; name those that are meant")
    return pattern


class Waiver(KnownKeysModel):
    """A waiver for the scenarios that match it."""

    scenario: Annotated[_Text, AfterValidator(_refuse_catch_all)] = Field(
        description="a scenario id, or a glob of them"
    )
    agent: _Text | None = Field(default=None, description="an agent, or a glob; None: any")
    reason: _Text
    until: Day = Field(description="the last day on which it holds")


class QuarantineEntry(Waiver):
    """`[[quarantine]]`: the scenario runs and is reported but does not gate."""

    owner: _Text


class QuarantineFile(KnownKeysModel):
    """A separate file of quarantined scenarios."""

    quarantine: tuple[QuarantineEntry, ...] = ()


class AcknowledgedEntry(Waiver):
    """`[[acknowledged]]`: the scenario's regressions are accepted."""


class AcknowledgedFile(KnownKeysModel):
    """`agent-eval-acknowledged.toml`: regressions that a team accepts until they expire."""

    acknowledged: tuple[AcknowledgedEntry, ...] = ()


def render_acknowledgement(scenario: str, agent: str | None, reason: str, until: str) -> str:
    """Return an entry of the file of acknowledged regressions, as TOML."""
    values = {"scenario": scenario, "agent": agent, "reason": reason, "until": until}
    lines = (f"{key} = {quote_toml(value)}" for key, value in values.items() if value is not None)
    return "\n".join(("[[acknowledged]]", *lines)) + "\n"
