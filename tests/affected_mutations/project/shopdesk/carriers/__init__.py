"""Carriers, loaded by name."""

import importlib


def load_carrier(name):
    return importlib.import_module(f"shopdesk.carriers.{name}").Carrier()


def book_carrier(carrier: str) -> str:
    """Book a carrier by its name."""
    return load_carrier(carrier).book_parcel()
