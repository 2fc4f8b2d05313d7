"""The message of a held full run: with a command, without one, and the user's own."""

from __future__ import annotations

from ci_agent_eval.steering.policy.reactor import compose_message
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, RESEND
from tests.tables import each_row

TARGETED = "uv run pytest tests/test_a.py"


def test_without_advice_the_default_message_is_the_documented_one():
    assert compose_message(DEFAULT_MESSAGE, None, has_session=True) == DEFAULT_MESSAGE


def test_the_command_is_named_before_the_offer_to_send_again():
    message = compose_message(DEFAULT_MESSAGE, TARGETED, has_session=True)

    assert message.startswith("You requested to run the whole test suite.")
    assert message.endswith(
        "To run the tests of the changed files, use `uv run pytest tests/test_a.py`." + RESEND
    )


def test_without_a_session_sending_again_is_not_offered():
    message = compose_message(DEFAULT_MESSAGE, TARGETED, has_session=False)

    assert message.endswith("use `uv run pytest tests/test_a.py`.")


@each_row(
    ("advice", "expected"),
    [(TARGETED, "Run uv run pytest tests/test_a.py."), (None, "Run pytest path/to/test_file.py.")],
)
def test_a_message_of_the_users_own_has_a_placeholder(advice, expected):
    assert compose_message("Run {command}.", advice, has_session=True) == expected


def test_a_message_of_the_users_own_without_placeholder_stays():
    assert compose_message("Not so fast.", TARGETED, has_session=True) == "Not so fast."
