"""Pseudonyms for personal data: e-mail addresses, phone, card and bank account numbers. Pure.

Each kind has a narrow shape, and cards and accounts a checksum, so that order numbers, dates and
ids stay readable. Names and postal addresses have no shape and are not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.redaction.distinct_names import make_distinct_names


@dataclass(frozen=True, slots=True)
class PersonalDataKind:
    """A kind of personal data: its shape, and what decides among the texts of that shape."""

    name: str
    pattern: re.Pattern[str]
    normalize: Callable[[str], str]
    """Returns equal texts for spellings of the same value."""
    is_valid: Callable[[str], bool] = lambda _: True
    """Says whether a normalized text is a value of the kind."""


def _keep_characters(text: str) -> str:
    return "".join(character for character in text if character.isalnum()).upper()


def _keep_digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def has_luhn_checksum(digits: str) -> bool:
    """Return whether the last digit is the Luhn checksum of the others (ISO/IEC 7812-1)."""
    odd, even = digits[-1::-2], digits[-2::-2]
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in even)
    return (sum(map(int, odd)) + sum(doubled)) % 10 == 0


def has_iban_checksum(account: str) -> bool:
    """Return whether an account number has the checksum of an IBAN (ISO 13616)."""
    moved = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


_NO_WORD_BEFORE = r"(?<![A-Za-z0-9])"
_NO_WORD_AFTER = r"(?![A-Za-z0-9])"
_CARD = re.compile(
    # Visa, Mastercard, American Express, Diners, JCB, Discover and UnionPay: the first digits
    # and lengths of https://en.wikipedia.org/wiki/Payment_card_number.
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|6\d{15,18}",
    re.ASCII,
)


def _is_card(digits: str) -> bool:
    return _CARD.fullmatch(digits) is not None and has_luhn_checksum(digits)


# The + of a phone number is not behind a word: in a query, `is+4111...` is a blank.
_NO_PHONE_BEFORE = r"(?:(?<!\+)|(?<=[A-Za-z0-9+.]\+))"
# 8 to 15 digits (E.164).
_INTERNATIONAL = r"(?<![A-Za-z0-9+.])\+[1-9](?:[ .()/-]{0,2}\d){7,14}(?![A-Za-z0-9])"
# With separators; bare digits are ids.
_NORTH_AMERICAN = (
    r"(?<![A-Za-z0-9+.-])(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])[2-9]\d{2}[ .-]\d{4}(?![A-Za-z0-9-])"
)

KINDS: tuple[PersonalDataKind, ...] = (
    PersonalDataKind(
        "email",
        re.compile(
            r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_%+-][A-Za-z0-9._%+-]{0,63}"
            r"@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
        ),
        str.lower,
    ),
    PersonalDataKind(
        "iban",
        re.compile(
            rf"{_NO_WORD_BEFORE}[A-Z]{{2}}\d{{2}}(?:[ -]?[A-Z0-9]{{4}}){{2,7}}"
            rf"(?:[ -]?[A-Z0-9]{{1,3}})?{_NO_WORD_AFTER}",
            re.ASCII,
        ),
        _keep_characters,
        has_iban_checksum,
    ),
    # One mobile number in ten has a card's checksum, so phone numbers come first.
    PersonalDataKind(
        "phone",
        re.compile(rf"{_INTERNATIONAL}(?![ .()/-]{{0,2}}\d)|{_NORTH_AMERICAN}", re.ASCII),
        _keep_digits,
    ),
    PersonalDataKind(
        "card",
        re.compile(
            rf"{_NO_WORD_BEFORE}(?:{_NO_PHONE_BEFORE}[2-6]\d(?:[ -]?\d){{11,17}}"
            # More digits than a phone number has.
            rf"|[2-6]\d(?:[ -]?\d){{14,17}}){_NO_WORD_AFTER}",
            re.ASCII,
        ),
        _keep_digits,
        _is_card,
    ),
    # Here a phone number with figures behind it: they may be a card, which had to be found first.
    PersonalDataKind(
        "phone", re.compile(rf"{_INTERNATIONAL}|{_NORTH_AMERICAN}", re.ASCII), _keep_digits
    ),
    # Cards behind a + that begins no phone number.
    PersonalDataKind(
        "card",
        re.compile(rf"{_NO_WORD_BEFORE}[2-6]\d(?:[ -]?\d){{11,17}}{_NO_WORD_AFTER}", re.ASCII),
        _keep_digits,
        _is_card,
    ),
)
"""The kinds, in the order in which they are searched."""


@dataclass(slots=True)
class Pseudonyms:
    """Replaces personal data by pseudonyms such as `[email-1]`; equal values get equal ones.

    They are numbered in the order of their first appearance, and do not depend on the value, so
    that nobody can find it by trying.
    """

    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The number of distinct values of each kind."""
        return dict(self._counts)

    def text(self, text: str) -> str:
        """Return a text without personal data."""
        for kind in KINDS:
            text = self._replace(kind, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without personal data, in keys as well as in values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            text = str(value)
            clean = self.text(text)
            return value if clean == text else clean
        if isinstance(value, dict):
            names = make_distinct_names(map(str, value), self.text)
            return {names[str(key)]: self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def _replace(self, kind: PersonalDataKind, text: str) -> str:
        pieces: list[str] = []
        done = position = 0
        while match := kind.pattern.search(text, position):
            start, end = match.start(), _find_end(kind, match)
            if end is None:
                position = _find_next_start(match)
                continue
            value = kind.normalize(text[start:end])
            pieces += [text[done:start], f"[{kind.name}-{self._number(kind.name, value)}]"]
            done = position = end
        return "".join([*pieces, text[done:]])

    def _number(self, kind: str, value: str) -> int:
        known = self._numbers.get((kind, value))
        if known is None:
            known = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[kind, value] = known
        return known


def _find_end(kind: PersonalDataKind, match: re.Match[str]) -> int | None:
    """Return where the value ends that begins with a match; None: there is none.

    A word or figure behind the value looks like one of its groups.
    """
    text, start = match.string, match.start()
    groups = _SEPARATOR.finditer(text, start, match.end())
    for end in (match.end(), *reversed([group.start() for group in groups])):
        is_shaped = kind.pattern.fullmatch(text, start, end)
        if is_shaped and kind.is_valid(kind.normalize(text[start:end])):
            return end
    return None


def _find_next_start(match: re.Match[str]) -> int:
    """Return where a value may begin in a match that is none, such as a card after a year.

    Not at a short group: some of a list of days or other small figures would pass as a card.
    """
    group = _LONG_GROUP.search(match.string, match.start() + 1, match.end())
    return match.end() if group is None else group.start()


_SEPARATOR = re.compile("[ -]")
_LONG_GROUP = re.compile(rf"{_NO_WORD_BEFORE}[A-Za-z0-9]{{4}}")
