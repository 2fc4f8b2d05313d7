"""A vendored module."""

RATE = 19


def add_tax(cents):
    return cents * (100 + RATE) // 100
