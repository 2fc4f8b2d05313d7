"""Personal data in traces is replaced by pseudonyms; figures that only look like it stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.redaction.personal_data import Pseudonyms, has_luhn_checksum


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("to Jane.Doe+x@shop.co.uk.", "to [email-1]."),
        ('{"to": "jane@shop.test"}', '{"to": "[email-1]"}'),
        ("4111 1111 1111 1111", "[card-1]"),
        ("4111-1111-1111-1111 12", "[card-1] 12"),
        ("378282246310005", "[card-1]"),
        ("DE89 3704 0044 0532 0130 00 THEN", "[iban-1] THEN"),
        ("ES91 2100 0418 4502 0005 1332 THEN", "[iban-1] THEN"),
        ("GB82WEST12345698765432", "[iban-1]"),
        ("2024 4111 1111 1111 1111", "2024 [card-1]"),
        ("12/26 4111-1111-1111-1111", "12/26 [card-1]"),
        ("q=my+378282246310005", "q=my+[card-1]"),
        ("+4111 1111 1111 1111", "+[card-1]"),  # too long for a phone number
        ("tel:+4111111111111111 2345", "tel:+[card-1] 2345"),
        ("x +4111111111111111 12 27 123 y", "x +[card-1] 12 27 123 y"),
        ("+4111 1111 1111 1111 2027 123", "+[card-1] 2027 123"),
        ("+378282246310005 1227 1234", "[phone-1] 1227 1234"),
        ("AB12 2345 DE89 3704 0044 0532 0130 00", "AB12 2345 [iban-1]"),
        ("+4915112345678", "[phone-1]"),  # has a card's checksum
        ("+49 151 12345678 4111 1111 1111 1111", "[phone-1] [card-1]"),
        ("+1 415-555-0123 415-555-0123", "+1 [phone-1] [phone-1]"),
        ("+49 (0)30 1234567", "[phone-1]"),
        ("(415) 555-0123", "[phone-1]"),
        ("415-555-0123 or 415.555.0123", "[phone-1] or [phone-1]"),
    ],
)
def test_personal_data_is_replaced(text, clean):
    assert Pseudonyms().text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # no checksum
        "1700000000000000000",  # nanoseconds
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "2026-11-26T10:00:00+00:00",
        "order 4155550123",
        "DE00 3704 0044 0532 0130 00",
        "a@b",
        "git@",
        "version 1.415.555.0123",
        "+12.5 degrees",
        "+1234567890123456",
        "2026-10-24 2026-10-25 2026-10-26 2026-10-27",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_other_figures_stay(text):
    assert Pseudonyms().text(text) == text


def test_equal_values_get_equal_pseudonyms_in_any_spelling():
    names = Pseudonyms()

    assert names.value({"a": "Jane@shop.test", "b": ["x@y.zz", "jane@SHOP.test"]}) == {
        "a": "[email-1]",
        "b": ["[email-2]", "[email-1]"],
    }
    assert names.value([4111111111111111, "4111 1111 1111 1111", True, 7]) == [
        "[card-1]",
        "[card-1]",
        True,
        7,
    ]
    assert names.counts == {"email": 2, "card": 1}


def test_keys_are_replaced_too():
    assert Pseudonyms().value({"jane@shop.test": 1}) == {"[email-1]": 1}


@given(st.text(alphabet="a1@.+-( )4DE", max_size=200))
def test_a_clean_text_stays_as_it_is(text):
    names = Pseudonyms()
    clean = names.text(text)

    assert names.text(clean) == clean


def join_groups(draw, digits, separators, shortest=1):
    """Split digits at random places, and put a separator there."""
    places = st.lists(st.integers(shortest, len(digits) - 1), max_size=4, unique=True)
    starts = [0, *sorted(draw(places))]
    groups = [digits[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return "".join(f"{draw(separators)}{group}" for group in groups[1:]).join((groups[0], ""))


@st.composite
def phone_numbers(draw):
    digits = draw(st.from_regex(r"[1-9][0-9]{7,14}", fullmatch=True))
    return "+" + join_groups(draw, digits, st.sampled_from([" ", "-", ".", "/", " (", ") "]))


@st.composite
def card_numbers(draw):
    shape = st.sampled_from([r"4[0-9]{11}", r"4[0-9]{14}", r"5[1-5][0-9]{13}", r"6[0-9]{17}"])
    digits = draw(shape.flatmap(lambda one: st.from_regex(one, fullmatch=True)))
    whole = next(f"{digits}{n}" for n in range(10) if has_luhn_checksum(f"{digits}{n}"))
    return join_groups(draw, whole, st.just(draw(st.sampled_from(" -"))), shortest=4)


@given(phone_numbers())
def test_each_phone_number_with_a_plus_is_one_whatever_its_checksum(number):
    assert Pseudonyms().text(f"call {number}, or") == "call [phone-1], or"


@given(card_numbers(), st.sampled_from(["", "code 21 ", "call +4915112345678 "]))
def test_each_card_number_is_one_whatever_is_before_it(number, before):
    clean = Pseudonyms().text(f"{before}{number}.")
    assert clean == f"{before.replace('+4915112345678', '[phone-1]')}[card-1]."


@pytest.mark.parametrize(("digits", "valid"), [("79927398713", True), ("79927398710", False)])
def test_luhn(digits, valid):
    assert has_luhn_checksum(digits) is valid
