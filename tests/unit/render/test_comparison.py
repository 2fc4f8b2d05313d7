"""What a baseline adds to every rendering: said once, in the same words, where a reader looks."""

from __future__ import annotations

import json
import re

import pytest

from ci_agent_eval.analysis.comparison.model import AllowedIncreases
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import MissingShards, RepeatedShard
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.formats.annotations import list_all_annotations, list_annotations
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.markdown.report import render_check_summary, render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.sentences import describe_reason
from ci_agent_eval.render.terminal.report import render_terminal
from ci_agent_eval.results.load import load_results
from tests.builders import (
    agreement,
    baseline,
    episode,
    failed_assertion,
    failing,
    finding,
    in_quarantine,
    manifest_of,
    report,
    tool_call,
    turn,
    write_run,
)
from tests.compared_reports import steps
from tests.render_reports import LINKS
from tests.tables import each_row

TEN = range(1, 11)
LAX = {"min_pass_rate": 0.1}
NEVER = {"min_pass_rate": 0.0}


def comment(built):
    return render_comment(build_report_view(built, LINKS))


def terminal(built, width=200):
    return render_terminal(build_report_view(built), color=False, width=width)


def row(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def costing(cost, scenarios=6, latency=100):
    turns = [turn(cost_usd=cost, latency_ms=latency)]
    return [
        episode(f"s{n}", iteration=i, trajectory={"turns": turns})
        for n in range(scenarios)
        for i in (1, 2, 3)
    ]


@pytest.fixture
def dearer():
    policy = GatePolicy(increases=AllowedIncreases(cost=0.5, latency=0.5))
    return report(*costing(0.02), policy=policy, baseline=baseline(costing(0.01)))


@pytest.mark.parametrize(
    "render", [comment, terminal, lambda r: render_check_summary(build_report_view(r, LINKS))]
)
def test_a_cost_that_rose_is_said_with_both_figures_and_the_limit(dearer, render):
    shown = render(dearer)
    line = next(one for one in shown.splitlines() if "whole suite" in one)
    assert "cost per episode rose by 100 % or more, 50 % allowed" in line
    assert ("$0.01" in line, "$0.02" in line) == (True, True)


def test_a_figure_that_rose_is_noted_although_it_has_no_file(dearer):
    ((kind, found),) = list_all_annotations(build_report_view(dearer))
    assert (kind, found.level, found.title) == (
        "baseline",
        "failure",
        "suite: against the baseline",
    )
    assert "cost per episode rose" in found.message
    assert list_annotations(build_report_view(dearer)) == ()


def test_a_rise_that_may_be_chance_is_said_and_does_not_gate():
    def one(dear):
        turns = [{"turns": [turn(cost_usd=cost)]} for cost in (0.01, 0.01, 0.01, dear)]
        return [episode(f"s{n}", trajectory=said) for n, said in enumerate(turns)]

    policy = GatePolicy(increases=AllowedIncreases(cost=0.5))
    built = report(*one(0.05), policy=policy, baseline=baseline(one(0.01)))
    (doubt,) = build_report_view(built).baseline_findings
    assert (doubt.gates, doubt.text) == (
        False,
        "cost per episode rose by 100 %, which may be chance, 50 % allowed",
    )
    assert render_headline(built) == "Agent evals passed: 4 of 4 scenarios"
    assert "⚠️ whole suite $0.01 → $0.02 · cost per episode rose by 100 %, which may" in comment(
        built
    )
    assert row(comment(built), "| cost per episode").endswith(
        "| +100 % (too few iterations), 50 % allowed, inconclusive |"
    )


def test_a_figure_that_is_not_measured_everywhere_says_in_how_many_scenarios():
    base = [*costing(0.01, 5), *(episode("s5", iteration=i) for i in (1, 2, 3))]
    built = report(
        *costing(0.01),
        policy=GatePolicy(increases=AllowedIncreases(cost=0.5)),
        baseline=baseline(base),
    )
    (doubt,) = build_report_view(built).baseline_findings
    assert doubt.text == (
        "cost per episode is not measured on both sides in 1 of 6 scenarios, 50 % allowed"
    )


def regressing(**policy):
    quiet = failed_assertion("is polite", reason=None)
    return report(
        *(episode("tone", iteration=n, **LAX) for n in (1, 2)),
        *(failing("tone", iteration=n, assertions=[quiet], **LAX) for n in range(3, 11)),
        episode("other"),
        policy=GatePolicy(**policy),
        baseline=baseline([*(episode("tone", iteration=n, **LAX) for n in TEN), episode("other")]),
    )


def test_a_failed_check_of_a_regression_does_not_say_that_nothing_changed():
    failure, warning = list_annotations(build_report_view(regressing()))
    assert failure.message.startswith("regression, adjusted p")
    assert warning.message.startswith(
        "the check failed: is polite\npasses 2 / 10, regression, adjusted p"
    )


def test_a_regression_that_only_warns_is_marked_among_what_passes():
    shown = comment(regressing(regressions="warn"))
    assert "2 passing scenarios" in shown
    assert "⚠️ <code>tone</code> 10/10 → 2/10, certain · fails <code>is polite</code>" in shown


def test_in_ctrf_a_regression_that_warns_passed():
    tests = json.loads(render_ctrf(build_report_view(regressing(regressions="warn"))))["results"][
        "tests"
    ]
    assert [t["status"] for t in tests if t["name"] == "tone"] == ["passed"]


def test_many_scenarios_with_other_calls_are_capped_and_counted():
    names = [f"s{n:02}" for n in range(14)]
    built = report(
        *(episode(s, iteration=n, **steps("b", "a")) for s in names for n in TEN),
        baseline=baseline([episode(s, iteration=n, **steps("a", "b")) for s in names for n in TEN]),
    )
    assert "14 scenarios make other tool calls" in comment(built)
    assert comment(built).count("first divergence") == 10
    assert "\n\nand 4 more\n\n</details>" in comment(built)


def with_tools(before, after):
    """A suite of six scenarios that called some tools and now call others."""
    names = [f"s{n}" for n in range(6)]
    return report(
        *(episode(s, iteration=n, **steps(*after)) for s in names for n in TEN),
        baseline=baseline([episode(s, iteration=n, **steps(*before)) for s in names for n in TEN]),
    )


def test_a_renamed_tool_and_a_new_one_have_a_line_each_in_every_format():
    built = with_tools(["look_up"], ["@find", "<b>ask"])
    assert (
        "**Different:** tool `look_up` is now `@find` in 6 scenarios; `<b>ask` is newly called in 6 "
        "scenarios\n"
    ) in comment(built)
    said = "tool look_up is now @find in 6 scenarios; <b>ask is newly called in 6 scenarios"
    assert said in " ".join(terminal(built).split())
    assert "first divergence" not in comment(built)
    view = build_report_view(built)
    page = "".join(render_html(view, [], [], budgets=SuiteBudgets()))
    assert "<p>Tool <bdi>look_up</bdi> → <bdi>@find</bdi> in 6 of 6 scenarios</p>" in page
    assert "<p>Tool <bdi>&lt;b&gt;ask</bdi> called in 0.0 % → 100.0 % of episodes" in page


def test_many_changed_tools_are_counted():
    built = with_tools(["look_up"], ["look_up", *(f"t{n}" for n in range(8))])
    line = row(comment(built), "- 🔵 **Different:** ")
    assert line.endswith("`t2` is newly called in 6 scenarios and 5 more")


def calling(build=episode, **arguments):
    calls = [tool_call("lookup"), tool_call("refund", arguments=arguments)]
    shown = [turn("hm"), turn(tool_calls=calls)]
    return build(trajectory={"turns": shown})


@each_row(
    ("before", "after", "shown"),
    [
        ({"amount": 40}, {"amount": 400}, ("refund(amount=40)", "refund(amount=400)")),
        ({"to": "a"}, {}, ('refund(to="a")', "refund()")),
        ({"a": 1, "b": [1]}, {"a": 1, "b": [2]}, ("refund(b=[1])", "refund(b=[2])")),
    ],
)
def test_an_argument_that_differs_is_shown_on_both_sides(before, after, shown):
    built = report(calling(failing, **after), baseline=baseline([calling(**before)]))
    minus, plus = shown
    for text in (comment(built), terminal(built)):
        assert f"- lookup → {minus}" in text
        assert f"+ lookup → {plus}" in text


def test_a_long_argument_is_cut_to_where_it_differs():
    same = "x" * 300
    built = report(calling(failing, q=same + "new"), baseline=baseline([calling(q=same + "old")]))
    (old,) = re.findall(r"- lookup → (.*?)\)", comment(built))
    assert old.endswith('xxxold"')
    assert len(old) < 90


def test_the_call_is_counted_in_its_own_turn():
    one, two = turn(tool_calls=[tool_call("a")]), turn(tool_calls=[tool_call("b"), tool_call("c")])
    other = turn(tool_calls=[tool_call("b"), tool_call("d")])
    built = report(
        failing(trajectory={"turns": [one, other]}),
        baseline=baseline([episode(trajectory={"turns": [one, two]})]),
    )
    (row,) = build_report_view(built).comparison.scenarios
    assert row.diff.place == "tool call 2 of turn 2"


def test_a_rise_from_next_to_nothing_is_told_in_times():
    built = report(*costing(0.01, latency=125), baseline=baseline(costing(0.01, latency=0.02)))
    assert row(comment(built), "| p95 turn latency").endswith("| 125 ms | ×6,250, certain |")


def test_few_tries_are_told_beside_the_most():
    built = report(
        *(episode(iteration=n, **LAX) for n in range(1, 20)), failing(iteration=20, **LAX)
    )
    assert "95.0 %" in comment(built)
    assert "`pass^3` 85.0 %, `pass@20` 100.0 %, `pass^20` 0.0 %" in comment(built)


def test_what_is_not_comparable_shows_both_sides():
    built = report(
        *(episode(iteration=n, conditions={"judge": "b"}) for n in (1, 2)),
        baseline=baseline([episode(conditions={"judge": "a"})]),
    )
    assert "**Unknown:** 1 scenario not comparable, as judge was `a` and is `b`" in comment(built)


def test_only_what_accepts_something_is_counted_as_acknowledged():
    built = report(
        *(failing("tone", iteration=n, **NEVER) for n in TEN),
        baseline=baseline([episode("tone", iteration=n, **NEVER) for n in TEN]),
        acknowledged=(agreement("tone"), agreement("gone")),
    )
    assert "Acknowledged, not gating: 1; 1 entry of the acknowledged accepts nothing" in comment(
        built
    )


def test_a_quarantine_that_is_over_names_the_budget_that_is_exceeded():
    over = {"tool_calls": {"used": 6, "limit": 4}}
    built = report(
        episode("refund", budgets=over), quarantine=(in_quarantine("refund", expired=True),)
    )
    assert "❌ `refund` tool calls 6 (limit 4)" in comment(built)
    assert "`refund` 1/1 until 2026-01-31, over: it gates again (`payments`)" in comment(built)
    assert "Quarantine refund until 2026-01-31, over: it gates again\n" in terminal(built)


@each_row(
    ("message", "said"),
    [
        (MissingShards((3,), 7), "shard 3 of 7 is missing"),
        (MissingShards((3, 5), 7), "shards 3, 5 of 7 are missing"),
        (MissingShards((1, 2, 3, 4, 5, 6), 9), "6 of 9 shards are missing"),
        (RepeatedShard(2, 7, 2), "shard 2 of 7 is there 2 times"),
        # Nobody reads a sentence, whatever it says.
        ("shard 3 of 7 left no results; do", "the shards are not one whole run"),
        ("the shards are of different commits; do", "the shards are not one whole run"),
    ],
)
def test_the_headline_names_the_shards_that_are_missing(message, said):
    built = report(episode(), findings=(finding("shards", where="", message=message),))
    assert render_headline(built) == f"Agent evals failed: {said}"
    assert "(empty)" not in comment(built) + terminal(built)
    assert not any(describe_reason(r).startswith(":") for r in built.verdict.reasons)


def test_the_headline_knows_the_findings_of_the_loader(tmp_path):
    session = Session(state="finished", selected=1, shard=Shard(index=1, count=3, run="7"))
    for name in ("a", "b"):
        write_run(tmp_path / name, episode(), session=session)
    found = [f for f in load_results(["*"], [], root=tmp_path).findings if f.kind == "shards"]
    said = {render_headline(report(episode(), findings=(one,))) for one in found}
    assert said >= {
        "Agent evals failed: shards 2, 3 of 3 are missing",
        "Agent evals failed: shard 1 of 3 is there 2 times",
    }


def test_a_shard_that_was_run_again_is_no_fault():
    again = finding("shards", where="shards/2", message="it was replaced", blocking=False)
    built = report(episode(), findings=(again,))
    assert render_headline(built).endswith("1 of 1 scenario, 1 shard was run again")
    assert "⚠️ shard run again in `shards/2`: `it was replaced`" in comment(built)


@each_row(
    ("source", "durations", "said"),
    [
        ("replayed", (1, 2, 3), "Baseline of 3 runs (2 repeated replays not counted);"),
        ("replayed", (1, 1, 2), "Baseline of 3 runs (1 copy and 1 repeated replay not counted);"),
        ("live", (1, 2, 3), "Baseline of 3 runs;"),
    ],
)
def test_what_of_the_baseline_does_not_count_is_said(source, durations, said):
    turns = {"trajectory": {"turns": [turn(source=source, latency_ms=81.5)]}}
    runs = [[episode(duration_ms=number, **turns)] for number in durations]
    built = report(episode(**turns), baseline=baseline(*runs))
    assert said in " ".join(comment(built).split())


@each_row(
    ("reason", "crashes"),
    [
        ("KeyError: 'queue' (agent.py:4)", True),
        ("AgentRunError: model_error: the agent failed: KeyError: 'timeout'", True),
        ("desk.OrderNotFoundError: 1011", True),
        ("openai.RateLimitError: Error code: 429", False),
        ("ValueError: HTTP 503 from the model", False),
        ("httpx.ConnectError: refused", False),
        ("the process ended before the episode did", False),
    ],
)
def test_a_crash_of_what_passed_is_worse_and_an_outage_is_unknown(reason, crashes):
    built = report(
        *(episode(iteration=n, outcome="error", reason=reason) for n in (1, 2)),
        baseline=baseline([episode(iteration=n) for n in (1, 2)]),
    )
    text = comment(built)
    assert ("**Worse:** 1 scenario crashes now (2/2 before)" in text) is crashes
    assert ("**Unknown:** 1 of 1 scenario did not run to an end" in text) is not crashes


@each_row(
    ("kind", "message"),
    [
        ("shards", MissingShards((2,), 3)),
        ("interrupted", "the run ended early"),
        ("collection_error", "SyntaxError"),
    ],
)
def test_what_a_broken_run_did_not_come_to_has_not_vanished(kind, message):
    built = report(
        episode("stays"),
        findings=(finding(kind, where="", message=message),),
        baseline=baseline([episode("stays"), episode("lost")]),
        manifest=manifest_of("stays", "lost"),
    )
    text = comment(built)
    assert "1 scenario of the baseline did not run: `lost`" in text
    assert not re.search(r"vanished|acknowledge|scenarios update|known scenario", text)
