"""The rule of the season."""

from shopdesk.rules import register_rule

SEASON = "winter"


@register_rule
def name_season(cents):
    return f"{SEASON} {cents}"
