from __future__ import annotations

import pytest

from ci_agent_eval.contract.wording import one_line, pluralize, shorten_text


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (pluralize(0, "call"), "0 calls"),
        (pluralize(1, "call"), "1 call"),
        (pluralize(2, "call"), "2 calls"),
        (pluralize(1, "pass", "passes"), "1 pass"),
        (pluralize(2, "pass", "passes"), "2 passes"),
        (pluralize(1200, "call", figure="1,200"), "1,200 calls"),
        (one_line(" a\n\tb  c\r\n"), "a b c"),
        (shorten_text("a\nb c", 5), "a b c"),
        (shorten_text("a\nb cd", 5), "a b …"),
    ],
)
def test_words_of_messages(written, expected):
    assert written == expected
