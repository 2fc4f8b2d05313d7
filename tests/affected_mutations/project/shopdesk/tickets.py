"""Ticket numbers, from a generator that all share."""


def name_series():
    return "T"


def yield_tickets():
    while True:
        yield f"{name_series()}-{100}"


TICKETS = yield_tickets()


def draw_ticket(reason: str) -> str:
    """Draw a ticket for a reason."""
    return f"{next(TICKETS)} for {reason}"
