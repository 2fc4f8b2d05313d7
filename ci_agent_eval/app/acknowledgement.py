"""`agent-eval acknowledge`: accept a scenario's regression until a date, in the reviewed file."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

from ci_agent_eval.config.options import Settings
from ci_agent_eval.config.settings import MAX_WAIVER_DAYS, parse_acknowledged
from ci_agent_eval.contract.scenario_manifest import render_acknowledgement
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import replace_file

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAYS = re.compile(r"(\d{1,4})d", re.ASCII)
_HEAD = "# Regressions that are accepted until they expire; reviewed like code.\n"


def resolve_last_day(until: str, today: dt.date) -> dt.date:
    """Return the day of a date, or of a number of days from today, such as `30d`.

    Raises InputError for other texts, for a day that has passed, and for one too far away.
    """
    days, date = _DAYS.fullmatch(until), _DATE.fullmatch(until)
    try:
        day = today + dt.timedelta(int(days[1])) if days else dt.date.fromisoformat(until)
    except ValueError:
        date = None
    if not days and not date:
        raise InputError(
            f"--until: give a date as YYYY-MM-DD, or a number of days such as 30d (got {until!r})"
        )
    if day < today:
        raise InputError(f"--until: {day} has passed; give {today} or a later date")
    latest = today + dt.timedelta(MAX_WAIVER_DAYS)
    if day > latest:
        raise InputError(
            f"--until: {day} is more than {MAX_WAIVER_DAYS} days away; give {latest} at the latest"
        )
    return day


def acknowledge_scenario(
    root: Path,
    settings: Settings,
    scenario: str,
    *,
    agent: str | None,
    until: dt.date,
    reason: str,
    today: dt.date,
) -> str:
    """Add an entry to the file of acknowledged regressions, and return the file's name.

    Raises InputError if the entry or the file is invalid, or if the scenario is acknowledged
    already.
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
    for old in known:
        if (old.scenario, old.agent) == (scenario, agent):
            raise InputError(
                f"{name}: {scenario!r} is acknowledged already, until {old.until}; "
                "change that entry"
            )
    text = (
        f"{before.rstrip()}\n\n{render_acknowledgement(scenario, agent, reason, until.isoformat())}"
    )
    parse_acknowledged(text, name, today)
    try:
        with replace_file(path) as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{name}: cannot be written ({error.strerror})") from None
    return name
