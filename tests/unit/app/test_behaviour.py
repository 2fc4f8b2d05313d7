"""The conversations that are read: those that failed by their cause, of comparable runs."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun
from ci_agent_eval.app.pipeline import MOST_CAUSES, MOST_ITERATIONS, find_pairs
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.results.baselines.runs import SampleCollector
from tests.builders import failed_assertion, loaded, report, talk, turn
from tests.comment_reports import add_pairs, build_comment_report


def pairs(head, base=()):
    samples = SampleCollector()
    for one in base:
        samples.keep(one.key, samples.put(one))
    run = BaselineRun(loaded(*base).episodes, samples=samples.list_samples())
    built = report(*head, baseline=Baseline("main", (run,)) if base else None)
    lines = [canonical_json(one) for one in head]
    return find_pairs(built, loaded(*head).episodes, lines, run.samples)


def say(answer, name="refund", check=None, **fields):
    if check is not None:
        fields |= {"outcome": "failed", "assertions": [failed_assertion(check)]}
    return talk("hi", turn(answer), scenario_id=name, **fields)


def test_only_iterations_that_failed_by_the_cause_are_shown():
    head = [
        say("a", iteration=1),
        say("b", check="rare", iteration=2),
        *(say("the usual answer", check="usual", iteration=n) for n in (3, 4)),
    ]
    (pair,) = pairs(head, [say("before"), say("bad", check="usual", iteration=2)])
    assert (pair.now.answer.text, pair.before.answer.text) == ("the usual answer", "before")


def test_what_is_not_comparable_or_new_has_no_before():
    head = [say("now", check="c", conditions={"judge": "b"}), say("new", "other", check="d")]
    found = pairs(head, [say("before", conditions={"judge": "a"})])
    assert {pair.scenario_id: pair.before for pair in found} == {"refund": None, "other": None}


def test_the_example_of_a_cause_is_its_first_scenario_with_a_pair():
    head = [say("now", name, check="c") for name in ("s1", "s2", "s10")]
    found = pairs(head, [say("before", "s2"), say("before", "s10")])
    # One without a baseline is another card.
    assert [one.scenario_id for one in found] == ["s2", "s1"]
    found = pairs(head, [say("before", name) for name in ("s1", "s2", "s10")])
    assert [one.scenario_id for one in found] == ["s1"]


def test_examples_are_few():
    head = [say("now", f"s{n:02}", check=f"check {chr(97 + n)}") for n in range(20)]
    assert len(pairs(head)) == MOST_CAUSES


def test_only_the_first_iterations_of_a_scenario_are_read():
    answers = ["the usual answer"] * MOST_ITERATIONS + ["short"]
    head = [say(answer, check="c", iteration=n) for n, answer in enumerate(answers, 1)]
    (pair,) = pairs(head)
    assert pair.now.answer.text == "the usual answer"


def test_pairs_are_read_back_from_the_verdict():
    built = build_comment_report("2-regression-answer")
    assert built.pairs
    assert parse_verdict(render_verdict(built)) == built
    again = add_pairs(built, [], None)
    assert parse_verdict(render_verdict(again)).pairs == ()
