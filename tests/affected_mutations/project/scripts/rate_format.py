"""Format the rate of a currency; only the child script imports this module."""


def format_rate(rate):
    return f"{rate:.2f}"
