"""Gifts."""

from functools import partial
from typing import TypedDict

from shopdesk.decorators import add_signature, repeat_word
from shopdesk.sizes import Size

PAPERS = {"small": lambda: "tissue", "large": lambda: "kraft"}


class Gift(TypedDict):
    """A wrapped gift."""

    paper: str
    ribbon: bool


@add_signature("gift desk")
def wrap_gift(size: Size) -> Gift:
    """Wrap a gift."""
    return f"wrapped in {PAPERS[Size(size).value]()}"


def tie_ribbon(colour, length=30):
    return f"{length} cm of {colour}"


tie_red_ribbon = partial(tie_ribbon, "red")


def order_ribbon(gift: str) -> str:
    """Order a ribbon for a gift."""

    def measure(text):
        return len(text) + 1

    return f"{tie_red_ribbon()} for {gift}, {sum(measure(part) for part in ['a', gift])}"
