"""What is not in the repository: packages, a file at home, the C library, the time zone."""

import time
from pathlib import Path

from shopdesk.prompts import ROOT


def read_ratecard(country: str) -> str:
    """Read the rate card of a country."""
    import ratecard

    return ratecard.find_rate(country)


def read_pricelist(item: str) -> str:
    """Read the price list of an item."""
    import pricelib

    return pricelib.find_price(item)


def read_profile(customer: str) -> str:
    """Read the profile of a customer."""
    path = Path("~/.shopdesk").expanduser()
    return f"{customer}: {path.read_text('utf-8').strip() if path.is_file() else 'no profile'}"


def tell_midnight(city: str) -> str:
    """Tell midnight of a city."""
    return f"{city}: {time.strftime('%H', time.localtime(0))}"


def read_lost_property(item: str) -> str:
    """Read the list of lost property for an item."""
    import ctypes

    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.fopen(str(ROOT / "data/lost.txt").encode(), b"r"))
    buffer = ctypes.create_string_buffer(200)
    library.fgets(buffer, 200, stream)
    library.fclose(stream)
    return f"{item}? {buffer.value.decode().strip()}"
