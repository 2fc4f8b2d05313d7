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


@pytest.mark.parametrize(("digits", "valid"), [("79927398713", True), ("79927398710", False)])
def test_luhn(digits, valid):
    assert has_luhn_checksum(digits) is valid
