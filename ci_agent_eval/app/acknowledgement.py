"""`agent-eval acknowledge`: accept a scenario's regression until a date, in the reviewed file."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

from ci_agent_eval.config.settings import Settings, parse_acknowledged
from ci_agent_eval.contract.waivers import render_acknowledgement
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import replace_file

_DAYS = re.compile(r"(\d{1,4})d", re.ASCII)
_HEAD = "# Regressions that are accepted until they expire; reviewed like code.\n"


def resolve_last_day(until: str, today: dt.date) -> str:
    """Return the date of a number of days from today, such as `30d`; other texts unchanged."""
    found = _DAYS.fullmatch(until)
    return (today + dt.timedelta(int(found[1]))).isoformat() if found else until


def acknowledge_scenario(
    root: Path,
    settings: Settings,
    scenario: str,
    *,
    agent: str | None,
    until: str,
    reason: str,
    today: dt.date,
) -> str:
    """Add an entry to the file of acknowledged regressions, and return the file's name.

    Raises InputError if the entry or the file is invalid, if the date has passed, or if the
    scenario is acknowledged already.
    """
    name = settings.acknowledged
    path = root / name
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = _HEAD
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read ({error}); correct it first") from None
    known = parse_acknowledged(before, name, today)
    for entry in known:
        if (entry.scenario, entry.agent) == (scenario, agent):
            raise InputError(
                f"{name}: {scenario!r} is acknowledged already, until {entry.until}; "
                "change that entry"
            )
    text = f"{before.rstrip()}\n\n{render_acknowledgement(scenario, agent, reason, until)}"
    *_, added = parse_acknowledged(text, name, today)
    if added.until < today:
        raise InputError(f"--until: {added.until} has passed; give {today} or a later date")
    try:
        with replace_file(path) as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{name}: cannot be written ({error.strerror})") from None
    return name
