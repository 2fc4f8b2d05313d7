"""Holidays, read at import."""

from shopdesk.prompts import ROOT

HOLIDAYS = (ROOT / "data/holidays.txt").read_text("utf-8").split()


def next_holiday(year: int) -> str:
    """Tell the next holiday of a year."""
    return next((day for day in HOLIDAYS if day.startswith(str(year))), "none")
