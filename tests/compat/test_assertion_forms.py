"""Every form of assertion is measured alike on every pytest, and strictly it is pytest's own.

These are the plugin's own tests of its table of forms, on the pytest of this environment.
"""

from __future__ import annotations

from tests.plugin.test_evaluation_forms import (
    measured,
    plain,
    strict,
    test_each_is_recorded_once,
    test_no_assertion_fails_the_test,
    test_strictly_it_is_what_pytest_says,
    test_the_reason_is_pytest_s_own,
)

__all__ = [
    "measured",
    "plain",
    "strict",
    "test_each_is_recorded_once",
    "test_no_assertion_fails_the_test",
    "test_strictly_it_is_what_pytest_says",
    "test_the_reason_is_pytest_s_own",
]
