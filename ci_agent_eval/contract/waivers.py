"""What a team has agreed not to be stopped by for a while, as its files say it."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ci_agent_eval.contract.base import KnownKeysModel

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _parse_date(given: Any) -> dt.date:
    """Read `YYYY-MM-DD`, or a date of TOML; a time of day would need a zone, and is refused."""
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        return given
    if isinstance(given, str) and _DATE.fullmatch(given):
        try:
            return dt.date.fromisoformat(given)
        except ValueError:
            raise ValueError(f"{given} is no day of the calendar") from None
    raise ValueError('must be a date written as "YYYY-MM-DD"')


Day = Annotated[dt.date, BeforeValidator(_parse_date)]
"""A day in UTC."""

_Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]


_WILD = re.compile(r"\[[^]]*\]|[*?\s]")
"""What stands for any character, or for one of several (Python's fnmatch)."""


def _refuse_catch_all(pattern: str) -> str:
    """Refuse a pattern that names nothing: it would hold the gate off for whatever comes."""
    if not _WILD.sub("", pattern):
        raise ValueError("matches every scenario; name those that are meant")
    return pattern


class Waiver(KnownKeysModel):
    """An agreement about the scenarios that match it."""

    scenario: Annotated[_Text, AfterValidator(_refuse_catch_all)] = Field(
        description="a scenario id, or a glob of them"
    )
    agent: _Text | None = Field(default=None, description="an agent, or a glob; None: any")
    reason: _Text
    until: Day = Field(description="the last day on which it holds")


class QuarantineEntry(Waiver):
    """`[[quarantine]]`: the scenario runs and is reported, and does not gate."""

    owner: _Text


class QuarantineFile(KnownKeysModel):
    """A file of its own for the scenarios in quarantine."""

    quarantine: tuple[QuarantineEntry, ...] = ()


class AcknowledgedEntry(Waiver):
    """`[[acknowledged]]`: what comparing found of the scenario is accepted."""


class AcknowledgedFile(KnownKeysModel):
    """`agent-eval-acknowledged.toml`: the regressions that a team accepts for a while."""

    acknowledged: tuple[AcknowledgedEntry, ...] = ()
