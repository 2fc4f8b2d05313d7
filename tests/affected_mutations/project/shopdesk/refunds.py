"""Refunds and their policies."""

from shopdesk import settings
from shopdesk.text import format_money


class Policy:
    """What a customer may get back."""

    limit = settings.REFUND_LIMIT
    fee = 100

    def charge_fee(self):
        return self.fee

    def decide_refund(self, cents):
        return min(cents, self.limit) - self.charge_fee()

    @property
    def label(self):
        return "policy"

    @staticmethod
    def round_cents(cents):
        return cents // 10 * 10


class StandardPolicy(Policy):
    """Of most customers."""

    fee = 250


class GoldPolicy(Policy):
    """Of good customers."""

    @classmethod
    def create_policy(cls):
        return cls()


def issue_refund(order_id: int, cents: int = 2000, reason: str = "damaged") -> str:
    """Issue the refund of an order.

    Ask for the reason first.
    """
    refunded = StandardPolicy().decide_refund(cents)
    return f"refund {order_id}: {format_money(refunded)} ({reason})"


def refund_gold(order_id: int) -> str:
    """Refund the order of a gold customer."""
    policy = GoldPolicy.create_policy()
    cents = policy.round_cents(policy.decide_refund(7777))
    return f"{policy.label} {order_id}: {cents}"


def cancel_order(order_id: int) -> str:
    """Cancel what was not sent yet."""
    return f"cancelled {order_id}"
