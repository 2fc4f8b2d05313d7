"""Imported late: registers how numbers are described."""

from shopdesk.badges import describe_value

LOADED = "values"


@describe_value.register
def _(value: int):
    return f"number {value}"
