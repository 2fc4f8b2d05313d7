from __future__ import annotations

from _pytest.junitxml import bin_xml_escape, mangle_test_address
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase, build_episode_record
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.results.join import JoinResult, build_pytest_address, join_cases
from tests.builders import episode
from tests.tables import each_row

NODE = "tests/test_refunds.py::test_refund"


def case(
    outcome: str = "passed", nodeid: str | None = NODE, name: str = "test_refund"
) -> JUnitCase:
    return JUnitCase("tests.test_refunds", name, outcome, nodeid=nodeid)  # type: ignore[arg-type]


def joined(episodes: list[Episode], cases: list[JUnitCase], *, complete: bool = True) -> JoinResult:
    return join_cases(
        [(0, build_episode_record(item)) for item in episodes], cases, complete=complete
    )


names = st.from_regex(r"[a-zA-Z_\[\]:./ é\x01\x7f-]+", fullmatch=True)


@given(names, names)
def test_the_address_is_the_one_pytest_writes(path: str, tail: str) -> None:
    nodeid = f"{path}::{tail}"
    *classnames, name = mangle_test_address(nodeid)
    assert build_pytest_address(nodeid) == (".".join(classnames), bin_xml_escape(name))


BUDGET = {"tool_calls": {"used": 5, "limit": 4}}
SOFT = {"tool_calls": {"used": 5, "limit": 4, "hard": False}}


@each_row(
    ("fields", "outcome", "agrees"),
    [
        ({}, "passed", True),
        ({}, "failed", False),
        ({}, "skipped", False),
        ({"outcome": "failed"}, "failed", True),
        ({"outcome": "failed"}, "passed", False),
        ({"outcome": "error"}, "error", True),
        ({"outcome": "error"}, "failed", True),
        ({"outcome": "error"}, "skipped", False),
        ({"outcome": "skipped"}, "skipped", True),
        ({"outcome": "skipped"}, "passed", False),
        ({"budgets": BUDGET, "trajectory": None}, "failed", True),
        ({"budgets": BUDGET, "trajectory": None}, "passed", False),
        ({"budgets": SOFT, "trajectory": None}, "passed", True),
        ({"outcome": "skipped", "missing_evidence": ["assertion"]}, "skipped", True),
        ({"outcome": "skipped", "missing_evidence": ["assertion"]}, "passed", False),
        ({"outcome": "skipped", "missing_evidence": ["assertion"]}, "failed", False),
        ({"outcome": "error", "missing_evidence": ["assertion"]}, "passed", True),
        ({"outcome": "error", "missing_evidence": ["assertion"]}, "skipped", False),
        ({"mode": "evaluation"}, "passed", True),
        ({"mode": "evaluation"}, "failed", False),
        ({"mode": "evaluation"}, "error", False),
        ({"mode": "evaluation", "outcome": "failed"}, "passed", True),
        ({"mode": "evaluation", "outcome": "failed"}, "failed", True),
        ({"mode": "evaluation", "outcome": "failed"}, "skipped", False),
        ({"mode": "evaluation", "outcome": "error"}, "failed", True),
        ({"mode": "evaluation", "outcome": "error"}, "passed", False),
        ({"mode": "evaluation", "outcome": "skipped"}, "passed", False),
        ({"mode": "evaluation", "budgets": BUDGET, "trajectory": None}, "passed", True),
        ({"mode": "evaluation", "budgets": BUDGET, "trajectory": None}, "failed", False),
    ],
)
def test_a_case_agrees_or_is_listed(fields: dict, outcome: str, agrees: bool) -> None:
    found = joined([episode(**fields)], [case(outcome)])
    assert found.plain == ()
    assert [(f.kind, f.where, f.blocking) for f in found.findings] == (
        [] if agrees else [("disagreement", NODE, True)]
    )


def test_a_case_without_property_joins_by_its_address() -> None:
    found = joined([episode(outcome="failed")], [case("passed", nodeid=None)])
    assert [f.where for f in found.findings] == [NODE]


def test_a_case_of_ours_without_episode_is_listed_and_stays_a_test() -> None:
    lost = case("failed", nodeid="tests/test_refunds.py::test_lost")
    found = joined([episode()], [case(), lost])
    assert found.plain == (lost,)
    assert [(f.where, "the JSON lacks" in f.message) for f in found.findings] == [
        ("tests/test_refunds.py::test_lost", True)
    ]


def test_an_episode_without_case_is_listed_when_its_run_has_cases() -> None:
    found = joined([episode(), episode("b")], [case()])
    assert [f.where for f in found.findings] == ["tests/test_refunds.py::test_b"]


def test_an_episode_without_case_says_nothing_when_the_junit_file_is_incomplete() -> None:
    assert joined([episode(), episode("b")], [case()], complete=False).findings == ()


def test_an_episode_of_a_run_without_junit_file_needs_no_case() -> None:
    runs = [(0, build_episode_record(episode())), (1, build_episode_record(episode("b")))]
    assert join_cases(runs, [case()], complete=True).findings == ()


def test_only_the_last_attempt_of_an_episode_counts() -> None:
    tries = [episode(attempt=1, outcome="failed"), episode(attempt=2)]
    assert joined(tries, [case("passed")]).findings == ()
    assert joined(tries[::-1], [case("passed")]).findings == ()
    assert joined(tries, [case("failed"), case("passed")]).findings == ()
    assert len(joined(tries, [case("failed")]).findings) == 1


@each_row(("outcome", "agrees"), [("passed", False), ("failed", True)])
def test_one_failing_episode_of_several_fails_their_test(outcome: str, agrees: bool) -> None:
    several = [episode(nodeid=NODE), episode("b", nodeid=NODE, outcome="failed")]
    assert (joined(several, [case(outcome)]).findings == ()) is agrees


def test_the_worst_of_several_cases_of_one_test_counts() -> None:
    # pytest writes two cases where a test failed and its teardown errored.
    assert joined([episode(outcome="failed")], [case("failed"), case("error")]).findings == ()
    assert len(joined([episode()], [case("passed"), case("error")]).findings) == 1


def test_many_disagreements_are_capped_and_counted() -> None:
    many = [episode(f"s{n:04}", outcome="failed") for n in range(250)]
    cases = [case("passed", nodeid=item.nodeid) for item in many]
    findings = joined(many, cases).findings
    assert len(findings) == 101
    assert findings[-1].message == "and 150 more disagreements of JSON and JUnit"


def test_what_pytest_wrote_of_a_run_cut_short_need_not_agree() -> None:
    episodes = [
        (0, build_episode_record(episode(outcome="error"))),
        (0, build_episode_record(episode("b"))),
    ]
    assert len(join_cases(episodes, [case("passed")], complete=True).findings) == 2
    assert join_cases(episodes, [case("passed")], complete=True, cut_short={0}).findings == ()
    others = [*episodes, (1, build_episode_record(episode("c", outcome="failed")))]
    cases = [case("passed"), case("passed", nodeid="tests/test_refunds.py::test_c")]
    found = join_cases(others, cases, complete=True, cut_short={0}).findings
    assert [f.where for f in found] == ["tests/test_refunds.py::test_c"]


def test_more_cases_than_episodes_are_listed() -> None:
    bad = episode(outcome="failed")
    assert len(joined([bad], [case("failed"), case("failed")]).findings) == 1
    assert len(joined([episode()], [case("passed"), case("passed")]).findings) == 1
    twice = [episode(iteration=1), episode(iteration=2, outcome="failed")]
    assert joined(twice, [case("passed"), case("failed")]).findings == ()
    assert len(joined(twice, [case("failed"), case("failed")]).findings) == 1


def test_a_retry_hides_no_case_that_no_attempt_explains() -> None:
    tries = [episode(attempt=1, outcome="failed"), episode(attempt=2)]
    assert len(joined(tries, [case("failed"), case("failed"), case("passed")]).findings) == 1
    good = [episode(attempt=1), episode(attempt=2)]
    assert len(joined(good, [case("failed"), case("passed")]).findings) == 1
    broken = [case("failed"), case("error"), case("passed")]  # its teardown broke, too
    assert joined(tries, broken).findings == ()


def test_not_even_a_run_that_was_cut_short_hides_a_failing_case() -> None:
    for item, outcome, findings in (
        (episode(), "failed", 1),
        (episode(outcome="error"), "passed", 0),
        (episode(outcome="error"), "failed", 0),
    ):
        found = join_cases(
            [(0, build_episode_record(item))], [case(outcome)], complete=True, cut_short={0}
        )
        assert len(found.findings) == findings


@each_row("raw", ["\x1b", "\x7f", "\ufffe"])
def test_a_node_id_with_control_characters_joins_as_pytest_writes_it(raw: str) -> None:
    item = episode(nodeid=f"{NODE}[{raw}]")
    claimed = case("failed", nodeid=str(bin_xml_escape(item.nodeid)))
    found = joined([item], [claimed])
    assert (found.plain, len(found.findings)) == ((), 1)
    agreeing = joined([item], [claimed._replace(outcome="passed")])
    assert (agreeing.plain, agreeing.findings) == ((), ())


def test_a_failed_evaluation_explains_one_failing_case_and_no_more() -> None:
    measured = [episode(mode="evaluation", outcome="failed")]
    assert joined(measured, [case("passed"), case("error")]).findings == ()
    assert len(joined(measured, [case("failed"), case("failed")]).findings) == 1


def test_a_strict_episode_beside_an_evaluation_still_has_to_fail_its_test() -> None:
    group = [
        episode(mode="evaluation", outcome="failed"),
        episode("b", nodeid=NODE, outcome="failed"),
    ]
    assert len(joined(group, [case("passed")]).findings) == 1
    assert joined(group, [case("failed")]).findings == ()
