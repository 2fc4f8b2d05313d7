"""Regions, from environment variables."""

import os


def tell_region(customer: str) -> str:
    """Tell the region of a customer."""
    return f"{customer} in {os.environ.get('SHOPDESK_REGION', 'nowhere')}"


def tell_hours(day: str) -> str:
    """Tell the hours of a day."""
    hours = os.environ["SHOPDESK_HOURS"] if "SHOPDESK_HOURS" in os.environ else "nine to five"
    return f"{day}: {hours}"


def expand_path(name: str) -> str:
    """Expand the path of a file name."""
    return os.path.expandvars(f"$SHOPDESK_STORE/{name}")


def sign_receipt(receipt: str) -> int:
    """Sign a receipt with the key."""
    return sum((receipt + os.environ.get("SHOPDESK_API_KEY", "")).encode())
