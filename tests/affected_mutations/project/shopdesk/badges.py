"""Badges: subclasses that register themselves, functions chosen by type, attributes made lazily."""

from functools import singledispatch

from shopdesk import badge_kinds


@singledispatch
def describe_value(value):
    return f"thing {value}"


def __getattr__(name):
    if name == "WARRANTY":
        return 24
    raise AttributeError(name)


def show_badges(holder: str) -> str:
    """Show the badges of a holder."""
    from shopdesk import badge_values, badges

    kinds = ", ".join(sorted(badge_kinds.Badge.kinds))
    return f"{holder}: {kinds}; {describe_value(3)}; {badges.WARRANTY}; {badge_values.LOADED}"
