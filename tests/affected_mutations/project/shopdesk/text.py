"""Helpers for text."""

from shopdesk import settings


def format_money(cents):
    # Two digits, as on a receipt.
    return f"{cents / 100:.2f} {settings.CURRENCY}"


def shorten_text(text, width=24):
    return text if len(text) <= width else text[: width - 1] + "…"


def unused_banner():
    return "*" * 10
