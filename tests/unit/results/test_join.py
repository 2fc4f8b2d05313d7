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


BAD, EVALUATED = episode(outcome="failed"), episode(mode="evaluation", outcome="failed")
RETRIED = [episode(attempt=1, outcome="failed"), episode(attempt=2)]
TWICE = [episode(iteration=1), episode(iteration=2, outcome="failed")]
OTHER = episode("b", nodeid=NODE, outcome="failed")


@each_row(
    ("episodes", "outcomes", "disagreements"),
    [
        ([episode(), episode("b")], "passed", 1),  # no case of b
        # Only the last attempt counts, and it explains the case of each before it.
        (RETRIED, "passed", 0),
        (RETRIED[::-1], "passed", 0),
        (RETRIED, "failed passed", 0),
        (RETRIED, "failed", 1),
        (RETRIED, "failed failed passed", 1),
        (RETRIED, "failed error passed", 0),  # its teardown broke, too
        ([episode(attempt=1), episode(attempt=2)], "failed passed", 1),
        # One failing episode of several fails their test.
        ([episode(nodeid=NODE), OTHER], "passed", 1),
        ([episode(nodeid=NODE), OTHER], "failed", 0),
        # pytest writes two cases where a test failed and its teardown errored.
        ([BAD], "failed error", 0),
        ([episode()], "passed error", 1),
        ([BAD], "failed failed", 1),
        ([episode()], "passed passed", 1),
        (TWICE, "passed failed", 0),
        (TWICE, "failed failed", 1),
        # A failed evaluation explains one failing case, and no strict episode beside it.
        ([EVALUATED], "passed error", 0),
        ([EVALUATED], "failed failed", 1),
        ([EVALUATED, OTHER], "passed", 1),
        ([EVALUATED, OTHER], "failed", 0),
    ],
)
def test_the_cases_of_a_test_are_those_of_its_episodes(
    episodes: list[Episode], outcomes: str, disagreements: int
) -> None:
    found = joined(episodes, [case(outcome) for outcome in outcomes.split()])
    assert len(found.findings) == disagreements


def test_a_test_that_crashed_every_worker_is_one_error() -> None:
    crash = """failed on setup with "worker 'gw{}' crashed while running 'test_refund'\""""
    crashes = [case("error")._replace(message=crash.format(number)) for number in range(9)]
    assert joined([episode(nodeid=NODE, outcome="error")], crashes).findings == ()
    (finding,) = joined([episode(nodeid=NODE)], crashes).findings
    assert "its JUnit case is failing" in finding.message
