"""The rule of loyal customers."""

from shopdesk.rules import register_rule


@register_rule
def reward_loyalty(cents):
    return f"loyalty {cents // 50}"
