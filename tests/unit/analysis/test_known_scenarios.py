"""A run against the manifest: what fails the gate, what warns, and what is not compared."""

from __future__ import annotations

from ci_agent_eval.contract.results import CollectionSkip, RemovedScenario, Session
from ci_agent_eval.gate import GatePolicy
from tests.builders import episode, in_quarantine, manifest_of, report
from tests.tables import each_row


def against(manifest, *episodes, policy=None, quarantine=(), **session):
    sessions = (Session(state="finished", **session),)
    return report(
        *episodes, manifest=manifest, sessions=sessions, policy=policy, quarantine=quarantine
    )


def told(reasons):
    return [(reason.kind, reason.scenario_id) for reason in reasons]


def missing(built):
    return [r.scenario_id for r in built.verdict.reasons if r.kind == "missing_scenario"]


def test_a_required_scenario_that_did_not_run_fails_by_name():
    built = against(manifest_of("refund", "search"), episode("search"))
    (reason,) = built.verdict.reasons
    assert (reason.kind, reason.scenario_id) == ("missing_scenario", "refund")
    assert reason.message == (
        "agent-eval-scenarios.toml:2 knows it, and it did not run; bring it back, or remove it "
        "with `agent-eval scenarios --write`"
    )


@each_row(
    ("session", "why"),
    [
        ({"removed": (RemovedScenario(scenario_id="refund", by="conftest.py"),)},
         ": removed by conftest.py;"),
        ({"removed": (RemovedScenario(scenario_id="refund"),)}, ": removed by a hook;"),
        ({"collection_skips": (CollectionSkip(file="tests/test_refunds.py", reason="no key"),)},
         ": its file was skipped (no key);"),
        ({"collection_skips": (CollectionSkip(file="tests", reason="no key"),)},
         ": its file was skipped (no key);"),
        ({"collection_skips": (CollectionSkip(file="tests/test_ref", reason="no key"),)}, "run;"),
    ],
)  # fmt: skip
def test_a_missing_scenario_says_what_is_known_of_it(session, why):
    built = against(manifest_of("refund"), episode("search"), **session)
    assert why in built.verdict.reasons[0].message


def test_a_scenario_that_is_not_known_warns_with_the_command_that_adds_it():
    built = against(manifest_of("refund"), episode("refund"), episode("search"))
    assert built.passed
    (warning,) = built.verdict.warnings
    assert (warning.kind, warning.scenario_id) == ("new_scenario", "search")
    assert "`agent-eval scenarios --write` adds it" in warning.message


REFUND = manifest_of("refund")
ADVISORY = episode("refund", gate="advisory")
HELD, OVER = (in_quarantine("refund", expired=expired) for expired in (False, True))


@each_row(
    ("built", "reasons", "warnings"),
    [
        (against(REFUND, episode("search"), ADVISORY), [("regated_scenario", "refund")], None),
        (against(manifest_of(advisory=["refund"]), episode("refund")), [],
         [("regated_scenario", "refund")]),
        (against(REFUND, episode("refund_v2", was=["refund"])), [],
         [("renamed_scenario", "refund_v2")]),
        # An entry stands for one renamed scenario only.
        (against(REFUND, episode("new_a", was=["refund"]), episode("new_b", was=["refund"])), [],
         [("renamed_scenario", "new_a"), ("new_scenario", "new_b")]),
        # In quarantine it may be missing until that ends.
        (against(REFUND, episode("search"), quarantine=(HELD,)), [], None),
        (against(REFUND, episode("search"), quarantine=(OVER,)), [("missing_scenario", "refund")],
         None),
    ],
)  # fmt: skip
def test_the_verdict_of_a_changed_suite(built, reasons, warnings):
    assert told(built.verdict.reasons) == reasons
    assert warnings is None or told(built.verdict.warnings) == warnings


@each_row("restriction", ["-k search", "--lf", "tests/test_refunds.py::test_search"])
def test_a_run_that_was_restricted_on_purpose_compares_what_it_ran(restriction):
    known = manifest_of("refund", "search")
    built = against(known, episode("search"), restrictions=(restriction,))
    assert built.passed
    (warning,) = built.verdict.warnings
    assert warning.message == (
        f"the run was restricted on purpose ({restriction}); 1 of 2 known scenarios compared"
    )


def test_a_restricted_run_misses_what_a_hook_took_from_it():
    removed = (RemovedScenario(scenario_id="refund", by="conftest.py"),)
    known = manifest_of("refund", "search", "chat")
    built = against(known, episode("search"), restrictions=("-k x",), removed=removed)
    assert missing(built) == ["refund"]


@each_row(
    ("paths", "expected"),
    [
        (("tests/a.py",), ["refund"]),
        (("tests/b.py",), ["other"]),
        (("tests",), ["refund", "other"]),
        (("tests/a.py", "tests/b.py"), ["refund", "other"]),
        ((".",), ["refund", "other"]),
        (("test",), []),
    ],
)
def test_paths_compare_the_scenarios_that_are_in_them(paths, expected):
    known = manifest_of("refund", "other", refund="tests/a.py", other="tests/b.py")
    built = against(known, episode("search"), paths=paths)
    assert missing(built) == sorted(expected)
    assert bool(built.summary.restrictions) is (len(expected) < 2)


def test_a_partial_run_is_no_evidence_where_the_whole_suite_is_asked_for():
    policy = GatePolicy(partial="fail")
    built = against(
        manifest_of("a", "search"), episode("search"), policy=policy, restrictions=("-k x",)
    )
    (reason,) = built.verdict.reasons
    assert reason.kind == "partial"
    assert "only a run of the whole suite is accepted here" in reason.message
