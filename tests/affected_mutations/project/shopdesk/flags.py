"""Flags, read from the environment at import."""

import os

MODE = os.getenv("SHOPDESK_MODE", "calm")


def tell_mode(desk: str) -> str:
    """Tell the mode of a desk."""
    return f"{desk} is {MODE}"
