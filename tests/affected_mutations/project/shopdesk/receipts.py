"""Receipts."""

from shopdesk.text import format_money, shorten_text

WIDTH = 24


def print_receipt(item, cents):
    return shorten_text(f"{item}: {format_money(cents)}", WIDTH)
