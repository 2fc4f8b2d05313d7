"""Failures with the same cause are one group, whatever numbers and folders their messages have."""

from __future__ import annotations

from ci_agent_eval.analysis.failure_causes import (
    AffectedScenario,
    find_failure_cause,
    group_by_cause,
    list_error_causes,
    replace_varying_parts,
)
from ci_agent_eval.contract.wording import build_natural_key
from tests.builders import episode, failed_assertion, failing, report
from tests.tables import each_row


@each_row(
    ("text", "same"),
    [
        ("Error for req_011CQxYz8dKw (call_aB3xYz9)", "Error for # (#)"),
        ("order 9c1d2e7aa0b1 is gone", "order # is gone"),
        ("run 123e4567-e89b-12d3-a456-426614174000 ended", "run # ended"),
        ("token aB3dE5gH7jK9mN1p expired", "token # expired"),
        ("<Agent object at 0x7f1c2b3a>", "<Agent object at #>"),
        ("no answer from 10.0.0.7:8080", "no answer from #"),
        ("cannot open /tmp/pytest-of-me/a.json", "cannot open #a.json"),
        ("cannot open /private/var/folders/x1/T/a.json", "cannot open #a.json"),
        (r"cannot open C:\Users\me\AppData\Local\Temp\a.json", "cannot open #a.json"),
        ("ended at 2026-11-28T10:00:01Z after 12.5 s", "ended at # after #"),
        ("expected 12 items, got 1,234.5", "expected # items, got #"),
        # What the code says stays.
        ("KeyError: 'customer1'", "KeyError: 'customer1'"),
        ("KeyError: '500'", "KeyError: '500'"),
        ("cannot open src/a.json", "cannot open src/a.json"),
        ("test_the_second_of_20_customers", "test_the_second_of_20_customers"),
        ("first line 1\nsecond line", "first line #"),
        ("decade and facade", "decade and facade"),
        ("", ""),
    ],
)
def test_ids_addresses_and_times_do_not_count(text, same):
    assert replace_varying_parts(text) == same


def cause(*episodes):
    (scenario,) = report(*episodes).summary.scenarios
    return find_failure_cause(scenario)


def test_a_check_is_known_by_its_name_alone():
    one, other = (
        cause(failing("a", assertions=[failed_assertion("is polite", reason=reason)]))
        for reason in ("'Go away' is rude", "the judge says no")
    )
    assert one.key == other.key == ("check", "is polite")
    assert (one.file, one.line, one.iterations) == ("tests/test_refunds.py", 48, 1)


def test_an_exception_is_known_by_its_type_and_message():
    one, other, third = (
        cause(failing("a", assertions=[failed_assertion(name, reason=reason)]))
        for name, reason in (
            ("AssertionError", "order 9c1d2e7aa0b1 is gone"),
            ("AssertionError", "order 1a2b3c4d5e6f is gone"),
            ("mypackage.errors.OrderError", "order 1a2b3c4d5e6f is gone"),
        )
    )
    assert one.key == other.key == ("message", "AssertionError: order # is gone")
    assert third.key == ("message", "mypackage.errors.OrderError: order # is gone")


def test_a_failure_without_a_check_is_known_by_its_reason():
    found = cause(episode(outcome="failed", reason="timed out after 30 s\nat x"))
    assert (found.sentence, found.key) == (
        "timed out after 30 s",
        ("message", "timed out after #"),
    )
    assert cause(episode(outcome="failed")).sentence == ""
    assert cause(episode()) is None


def test_errors_are_counted_by_their_reason():
    (scenario,) = report(
        *(episode(iteration=n, outcome="error", reason="429") for n in (1, 2)),
        episode(iteration=3, outcome="error"),
        episode(iteration=4),
    ).summary.scenarios
    found = list_error_causes(scenario)
    assert [(one.sentence, one.iterations) for one in found] == [("429", 2), ("", 1)]


def test_groups_are_ordered_by_role_history_size_and_natural_name():
    built = report(*(failing(f"s{n}", assertions=[failed_assertion(f"c{n}")]) for n in range(12)))
    scenarios = {one.scenario_id: one for one in built.summary.scenarios}

    def affect(number, check, role="gates", history="new"):
        found = find_failure_cause(scenarios[f"s{number}"])

        return AffectedScenario(scenarios[f"s{number}"], found._replace(name=check), role, history)

    groups = group_by_cause(
        [
            affect(0, "w", "warns"),
            affect(1, "w"),
            affect(2, "w", history="still"),
            affect(10, "b"),
            affect(3, "b"),
            affect(4, "d", "contributes"),
            affect(5, "a"),
        ]
    )
    names = [[one.scenario.scenario_id for one in group.scenarios] for group in groups]
    assert names == [["s3", "s10"], ["s1"], ["s5"], ["s2"], ["s4"], ["s0"]]


def test_natural_order_compares_numbers_of_any_length():
    names = ["run-10", "run-9", "run", "run-9a", "run-09b", f"run-{'1' * 5000}"]
    assert sorted(names, key=build_natural_key) == [
        *("run", "run-9", "run-9a", "run-09b", "run-10", f"run-{'1' * 5000}")
    ]


OUTAGE = "openai.RateLimitError: Error code: 429 - Limit 30000, used {used}; request {request}"


def test_the_answers_of_a_server_with_one_status_are_one_cause():
    keys = {
        cause(episode(outcome="failed", reason=OUTAGE.format(used=n, request=f"r{n}"))).key
        for n in range(50)
    }
    assert keys == {("message", "openai.RateLimitError: HTTP 429")}
    other = "openai.InternalServerError: Error code: 500 - no"
    assert cause(episode(outcome="failed", reason=other)).key not in keys


def test_a_number_of_three_digits_is_not_a_status():
    found = cause(episode(outcome="failed", reason="ValueError: 500 items, at most 400"))
    assert found.key == ("message", "ValueError: # items, at most #")
