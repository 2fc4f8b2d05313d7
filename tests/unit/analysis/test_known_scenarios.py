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


def test_an_advisory_scenario_that_did_not_run_warns():
    built = against(manifest_of(advisory=["refund"]), episode("search"))
    assert built.passed
    assert ("missing_scenario", "refund") in told(built.verdict.warnings)


@each_row(("expired", "passes"), [(False, True), (True, False)])
def test_a_scenario_in_quarantine_may_be_missing_until_that_ends(expired, passes):
    held = in_quarantine("refund", expired=expired)
    built = against(manifest_of("refund"), episode("search"), quarantine=(held,))
    assert built.passed is passes


def test_a_scenario_that_is_not_known_warns_with_the_command_that_adds_it():
    built = against(manifest_of("refund"), episode("refund"), episode("search"))
    assert built.passed
    (warning,) = built.verdict.warnings
    assert (warning.kind, warning.scenario_id) == ("new_scenario", "search")
    assert "`agent-eval scenarios --write` adds it" in warning.message


def test_a_scenario_that_gates_no_more_fails():
    built = against(manifest_of("refund"), episode("search"), episode("refund", gate="advisory"))
    assert ("regated_scenario", "refund") in told(built.verdict.reasons)
    assert "regated_scenario" not in dict(told(built.verdict.warnings))


def test_a_scenario_that_gates_now_warns():
    built = against(manifest_of(advisory=["refund"]), episode("refund"))
    assert told(built.verdict.reasons) == []
    assert told(built.verdict.warnings) == [("regated_scenario", "refund")]


def test_a_renamed_scenario_stands_for_its_entry():
    built = against(manifest_of("refund"), episode("refund_v2", was=["refund"]))
    assert built.passed
    assert told(built.verdict.warnings) == [("renamed_scenario", "refund_v2")]


def test_an_entry_stands_for_one_renamed_scenario_only():
    new = [episode(name, was=["refund"]) for name in ("refund_all", "refund_part")]
    built = against(manifest_of("refund"), *new)
    assert told(built.verdict.warnings) == [
        ("renamed_scenario", "refund_all"),
        ("new_scenario", "refund_part"),
    ]


def test_a_scenario_stands_for_one_entry_only():
    built = against(manifest_of("a", "b"), episode("new", was=["a", "b"]))
    assert missing(built) == ["b"]


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
