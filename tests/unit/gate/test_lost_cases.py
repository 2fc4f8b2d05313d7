"""Cases of a scenario that the baseline or the manifest knows, and the run has no more."""

from __future__ import annotations

from ci_agent_eval.contract.results import Session
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.sentences import describe_reason
from tests.builders import baseline, episode, manifest_of, report
from tests.tables import each_row


def of_cases(*cases, test="tests/test_a.py::test_it", iterations=1, **fields):
    """Episodes of a parametrized scenario; a case is its id, or its id and its parameters."""
    made = []
    for case in cases:
        name, shown = case if isinstance(case, tuple) else (case, f"[{case}]")
        for n in range(1, iterations + 1):
            suffix = f"-{n}-of-{iterations}" if iterations > 1 else ""
            nodeid = f"{test}[{name}{suffix}]"
            own = {"nodeid": nodeid, "case": shown, "iteration": n, "iterations": iterations}
            made.append(episode(file=test.partition("::")[0], **own, **fields))
    return made


EASY, HARD = ("c0", "[c='easy']"), ("c1", "[c='hard']")
OTHER_TEST, MOVED_TEST = "tests/test_b.py::test_other", "tests/test_b.py::test_it"
RENAMED_TEST = "tests/test_a.py::test_other"


@each_row(
    ("before", "now", "vanished"),
    [
        (of_cases("a", "b"), of_cases("a", "b"), None),
        (of_cases("a", "b"), of_cases("a", "c"), "1 case of the baseline did not run: [b]"),
        (of_cases("a", "b", "c", "d", "e"), of_cases("a"),
         "4 cases of the baseline did not run: [b], [c], [d] and 1 more"),
        (of_cases("a", "b", iterations=2), of_cases("a", "b"), None),
        (of_cases(EASY, HARD), of_cases(EASY, ("c1", "[c='easier']")),
         "1 case of the baseline did not run: [c='hard']"),
        (of_cases(EASY, HARD), of_cases(("c0", "[c='new']"), ("c1", EASY[1]), ("c2", HARD[1])), None),
        (of_cases("a", "b"), of_cases("a", "b", test=MOVED_TEST), None),
        (of_cases("a", "b"), of_cases("a", "b", test=RENAMED_TEST), None),
        (of_cases("a", "b"), of_cases("a", test=MOVED_TEST),
         "1 case of the baseline did not run: [b]"),
        (of_cases("a", "b"), of_cases("a", "b", test=OTHER_TEST),
         "1 case of the baseline did not run: tests/test_a.py::test_it"),
        ([episode(nodeid="tests/test_a.py::test_hard")],
         [episode(nodeid="tests/test_b.py::test_easy")],
         "1 case of the baseline did not run: tests/test_a.py::test_hard"),
        (of_cases("a") + of_cases("a", test=OTHER_TEST), of_cases("a"),
         "1 case of the baseline did not run: tests/test_b.py::test_other"),
        (of_cases(("c0", None), ("c1", None)), of_cases(EASY),
         "1 case of the baseline did not run: [c1]"),
    ],
)  # fmt: skip
def test_a_required_scenario_that_lost_cases_fails(before, now, vanished):
    built = report(*now, baseline=baseline(before))
    reasons = built.verdict.reasons
    lost = [describe_reason(one) for one in reasons if one.kind == "vanished_cases"]
    advice = "; bring it back, or acknowledge it"
    assert lost == ([] if vanished is None else [vanished + advice])
    assert built.passed is (vanished is None)
    advisory = [one.model_copy(update={"gate": "advisory"}) for one in (*before, *now)]
    assert report(*advisory[len(before) :], baseline=baseline(advisory[: len(before)])).passed


def test_cases_that_did_not_belong_to_the_run_are_not_lost():
    before, now = baseline(of_cases("a", "b")), of_cases("a")
    sessions = (
        Session(state="finished", left_out=("refund[b]",)),
        Session(state="finished", restrictions=("-k a",)),
    )
    for session in sessions:
        built = report(*now, baseline=before, sessions=(session,))
        assert "vanished_cases" not in {reason.kind for reason in built.verdict.reasons}


def test_a_moved_test_is_named_with_both_files():
    built = report(*of_cases("a", test=MOVED_TEST), baseline=baseline(of_cases("a")))
    comment = render_comment(build_report_view(built, Links()))
    assert "1 moved scenario: `refund` from `tests/test_a.py` to `tests/test_b.py`" in comment

    swapped = report(*of_cases("a", test=OTHER_TEST), baseline=baseline(of_cases("a")))
    assert "moved scenario" not in render_comment(build_report_view(swapped, Links()))


def test_a_test_of_the_same_id_in_another_file_does_not_satisfy_the_manifest():
    manifest = manifest_of("refund", refund="tests/test_old.py")
    (reason,) = report(episode("refund"), manifest=manifest).verdict.reasons
    assert reason.kind == "missing_scenario"
    assert reason.message == (
        "agent-eval-scenarios.toml:2 knows it in tests/test_old.py, and its test is in "
        "tests/test_refunds.py; bring it back, or `agent-eval scenarios --write` updates it"
    )
    other = episode("refund", nodeid="tests/test_old.py::test_it", file="tests/test_old.py")
    assert report(episode("refund"), other, manifest=manifest_of("refund")).passed
