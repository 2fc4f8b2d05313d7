"""Formats of numbers, one for each kind of figure, independent of the locale."""

from __future__ import annotations

import math
from collections.abc import Callable

from ci_agent_eval.contract.wording import pluralize

ABSENT = "–"  # noqa: RUF001 - a dash, not a hyphen
"""Placeholder of a figure that does not apply."""

NOT_MEASURED = "not measured"
"""Placeholder of a figure that should have been measured."""

SCIENTIFIC_FROM = 1e15
"""From this value on exponents are used."""
SMALL_MS = 10
"""Below this many milliseconds one decimal is shown."""
LONG_MS = 100_000
"""From this many milliseconds on seconds are shown."""
LONG_S = 120
"""From this many seconds on minutes are shown."""
MS_IN_S = 1_000
SMALL_MONEY = 1e-8
"""Below this many dollars only the bound is shown."""
SIGNIFICANT = 2
"""Significant digits of an amount under one dollar."""
TIMES_FROM = 10
"""From this factor on a change is written as a factor, not in percent."""
MAX_DIGITS = 12
"""Most digits that make two figures look different."""


def format_count(number: float) -> str:
    """Write a whole number with commas between thousands: `12,345`."""
    if abs(number) >= SCIENTIFIC_FROM:
        return f"{float(number):.3g}" if abs(number) < 1e300 else "over 1e+300"
    return f"{number:,.0f}"


def format_part(part: int, whole: int) -> str:
    """Write a part of a whole: `4/5`."""
    return f"{format_count(part)}/{format_count(whole)}"


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: `1 episode`, `2 episodes`."""
    return pluralize(number, noun, plural, figure=format_count(number))


def format_percent(share: float) -> str:
    """Write a share of 1 with one decimal; only exactly all is 100.0 %, only nothing is 0.0 %."""
    return f"{_format_hundredths(share)} %"


def format_percent_within(share: float, interval: tuple[float, float] | None) -> str:
    """Write a share with the interval it lies in: `93.3 % (84.1–97.4)`."""  # noqa: RUF002 - a range
    return (
        format_percent(share)
        if interval is None
        else f"{format_percent(share)} ({format_percent_range(interval)})"
    )


def format_percent_range(interval: tuple[float, float]) -> str:
    """Write an interval of shares: `84.1–97.4`."""  # noqa: RUF002 - a range
    low, high = map(_format_hundredths, interval)
    return f"{low}–{high}"  # noqa: RUF001 - a range


def _format_hundredths(share: float) -> str:
    shown = round(share * 100, 1)
    if share not in (0, 1):
        shown = max(shown, 0.1) if share < 0.5 else shown
        shown = min(shown, 99.9) if share < 1 else shown
    return f"{shown:,.1f}"


def format_share(share: float, digits: int = 0) -> str:
    """Write a share of 1 in whole percents; only exactly all is 100 %, only nothing is 0 %."""
    shown, least = round(share * 100, digits), 10.0**-digits
    if share not in (0, 1):
        shown = min(max(shown, least), 100 - least)
    return f"{shown:.{digits}f} %"


def format_score(value: float, digits: int = SIGNIFICANT) -> str:
    """Write a score from 0 to 1; only exactly 1 looks like 1, and only 0 like 0."""
    smallest = 10.0**-digits
    if value not in (0, 1):
        value = min(max(value, smallest), 1 - smallest)
    return f"{value:.{digits}f}"


def format_required_score(value: float) -> str:
    """Write a required score with the digits of the setting."""
    return f"{value:.6g}"


def format_score_below(value: float, least: float) -> str:
    """Write a score with enough digits to look lower than the required one."""
    for digits in range(SIGNIFICANT, MAX_DIGITS):
        shown = f"{value:.{digits}f}"
        if float(shown) < least:
            return shown
    return repr(value)


def format_money(dollars: float, digits: int = SIGNIFICANT) -> str:
    """Write US dollars: cents from one dollar on, `digits` significant digits below it."""
    if dollars >= 1 or dollars == 0:
        return f"${_format_decimals(dollars, max(2, digits))}"
    if dollars < SMALL_MONEY:
        return "under $0.00000001"
    places = max(2, digits - 1 - math.floor(math.log10(dollars)))
    whole, _, cents = f"{dollars:.{places}f}".partition(".")
    return f"${whole}.{cents[:2]}{cents[2:].rstrip('0')}"


def format_milliseconds(value: float, digits: int = 1) -> str:
    """Write a latency: `4.2 ms`, `1,380 ms`, `132.5 s`."""
    if value < SMALL_MS:
        return f"{_format_decimals(value, digits, trim=True)} ms"
    if value < LONG_MS:
        return f"{_format_decimals(value, digits - 1, trim=True)} ms"
    return f"{_format_decimals(value / 1000, digits)} s"


def format_latency(value: float, digits: int = 1) -> str:
    """Write a latency for a sentence: `4.2 ms`, `380 ms`, `1.4 s`."""
    if value < MS_IN_S:
        return format_milliseconds(value, digits)
    return f"{_format_decimals(value / MS_IN_S, digits)} s"


def format_seconds(value: float, digits: int = 1) -> str:
    """Write a duration: `12.3 s`, `5 min 12 s`."""
    if value < LONG_S or digits > 1 or value >= SCIENTIFIC_FROM:
        return f"{_format_decimals(value, digits)} s"
    whole = round(value)
    return f"{format_count(whole // 60)} min {whole % 60} s"


def format_amount(value: float, digits: int = SIGNIFICANT) -> str:
    """Write a figure of no known unit: whole numbers whole, others with up to `digits` decimals."""
    return _format_decimals(value, digits, trim=True)


def format_distinct(
    write: Callable[[float, int], str], low: float, high: float, digits: int
) -> tuple[str, str]:
    """Write two different figures with enough digits to look different."""
    for more in range(digits, MAX_DIGITS):
        pair = write(low, more), write(high, more)
        if pair[0] != pair[1] or low == high:
            return pair
    return repr(low), repr(high)


def _format_decimals(value: float, places: int, *, trim: bool = False) -> str:
    if abs(value) >= SCIENTIFIC_FROM:
        return format_count(value)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if trim and "." in text else text


def format_p_value(value: float) -> str:
    """Write a p-value: `p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def format_difference(number: int) -> str:
    """Write the change of a count: `−1`, `+2`, `±0`."""  # noqa: RUF002 - a minus
    return f"{_find_sign(number)}{format_count(abs(number))}"


def format_points(share: float, interval: tuple[float, float] | None = None) -> str:
    """Write the change of a share and its interval: `−5.0 pp (−9.1 to −0.9)`."""  # noqa: RUF002 - a minus
    shown = f"{_format_signed(share * 100, 1)} pp"
    if interval is None:
        return shown
    low, high = (_format_signed(end * 100, 1) for end in interval)
    return f"{shown} ({low} to {high})"


def format_score_change(change: float, interval: tuple[float, float] | None) -> str:
    """Write the change of a score and its interval: `−0.050 (−0.091 to −0.009)`."""  # noqa: RUF002 - a minus
    if interval is None:
        return _format_signed(change, 3)
    low, high = (_format_signed(end, 3) for end in interval)
    return f"{_format_signed(change, 3)} ({low} to {high})"


def _format_signed(value: float, places: int) -> str:
    shown = round(value, places)
    return f"{_find_sign(shown)}{abs(shown):,.{places}f}"


def format_allowed(share: float) -> str:
    """Write the allowed increase with the digits of the setting: `50 % allowed`."""
    return f"{share * 100:.6g} % allowed"


def format_rise(grown: float) -> str:
    """Write an increase in percent or as a factor: `by 4.2 %`, `to ×12`."""  # noqa: RUF002 - times
    if grown + 1 >= TIMES_FROM:
        return f"to {_format_times(grown)}"
    return f"by {_format_relative(grown).lstrip('+')} %"


def format_change(before: float, after: float, interval: tuple[float, float] | None) -> str:
    """Write a relative change and its interval: `+11 % (−2 to +24)`, `×12 (9 to 15)`."""  # noqa: RUF002 - signs
    if before <= 0:
        return "±0 %" if after == before else "from 0"
    grown = after / before - 1
    in_times = grown + 1 >= TIMES_FROM
    write = _format_times if in_times else _format_relative
    shown = write(grown) if in_times else f"{write(grown)} %"
    if interval is None:
        return shown
    low, high = (write(end).lstrip("×") for end in interval)  # noqa: RUF001 - times
    return shown if low == high else f"{shown} ({low} to {high})"


def format_factor(factor: float) -> str:
    """Write a factor: `×1.8`, `×12`."""  # noqa: RUF002 - times
    return f"×{format_count(factor) if factor >= TIMES_FROM else f'{factor:.1f}'}"  # noqa: RUF001 - times


def format_pair(
    write: Callable[[float, int], str], before: float, after: float, digits: int
) -> str:
    """Write a change of a figure with enough digits to look different: `97 % → 92 %`."""
    return " → ".join(format_distinct(write, before, after, digits))


def _format_times(grown: float) -> str:
    """Write relative growth as a factor."""
    times = grown + 1
    return f"×{format_count(times) if times >= TIMES_FROM else f'{times:.2g}'}"  # noqa: RUF001 - times


def _format_relative(share: float) -> str:
    shown = share * 100
    rounded = round(shown) if abs(shown) >= 10 else round(shown, 1)
    size = abs(rounded)
    return f"{_find_sign(rounded)}{format_count(size) if size >= 10 else f'{size:g}'}"


def _find_sign(number: float) -> str:
    return "±" if number == 0 else "+" if number > 0 else "−"  # noqa: RUF001 - a minus
