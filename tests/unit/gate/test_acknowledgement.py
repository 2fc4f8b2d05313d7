"""Acknowledgement: what comparing found and a team accepts, until a day."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import AllowedIncreases, NoBaseline
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from tests.builders import agreement, baseline, episode, failing, report
from tests.tables import each_row

GOOD = [episode(iteration=i, min_pass_rate=0.0) for i in range(1, 21)]
BAD = [failing(iteration=i, min_pass_rate=0.0) for i in range(1, 21)]
LAX = {"min_pass_rate": 0.0}
MANY = [episode(iteration=i, **LAX) for i in range(1, 51)]
LESS = [*(episode(iteration=i, gate="advisory", **LAX) for i in range(1, 21)), episode("other")]
OTHER = [episode("other")]
HELD = agreement(reason="the new prompt asks back")
OVER = agreement(reason="the new prompt asks back", expired=True)


def told(found):
    return [(reason.kind, reason.scenario_id) for reason in found]


@each_row(
    ("now", "kind"),
    [(BAD, "regression"), (OTHER, "vanished"), (LESS, "downgraded")],
    ids=["regression", "vanished", "downgraded"],
)
def test_what_is_acknowledged_is_a_warning_until_the_day(now, kind):
    base = baseline(MANY)
    alone = report(*now, baseline=base)
    assert (kind, "refund") in told(alone.verdict.reasons)

    held = report(*now, baseline=base, acknowledged=(HELD,))
    assert kind not in [reason.kind for reason in held.verdict.reasons]
    (warning,) = [w for w in held.verdict.warnings if w.kind == "acknowledged"]
    ending = "; acknowledged: the new prompt asks back, until 2026-01-31"
    assert (warning.scenario_id, warning.message.endswith(ending)) == ("refund", True)

    over = report(*now, baseline=base, acknowledged=(OVER,))
    (reason,) = [r for r in over.verdict.reasons if r.kind == kind]
    ended = "; it was acknowledged until 2026-01-31, which is over (the new prompt asks back)"
    assert reason.message.endswith(ended)
    assert not over.passed


def test_a_scenario_below_its_own_rate_fails_whatever_was_acknowledged():
    bad = [failing(iteration=i) for i in range(1, 21)]
    built = report(*bad, baseline=baseline(GOOD), acknowledged=(HELD,))
    assert told(built.verdict.reasons) == [("scenario", "refund")]


def test_one_about_another_scenario_changes_nothing_and_is_said():
    built = report(*BAD, baseline=baseline(GOOD), acknowledged=(agreement("other"),))
    assert told(built.verdict.reasons) == [("regression", "refund")]
    (warning,) = [w for w in built.verdict.warnings if w.kind == "acknowledged"]
    assert warning.message.startswith("acknowledgement of 'other': comparing found nothing of it")


@each_row("base", [None, NoBaseline("no artifact")])
def test_without_a_comparison_none_is_called_needless(base):
    built = report(*GOOD, baseline=base, acknowledged=(HELD,))
    assert [w for w in built.verdict.warnings if w.kind == "acknowledged"] == []


def test_the_suite_s_own_figures_cannot_be_acknowledged():
    policy = GatePolicy(increases=AllowedIncreases(cost=0.1))
    built = report(*GOOD, baseline=baseline(GOOD), policy=policy, acknowledged=(agreement("*"),))
    assert [reason.kind for reason in built.verdict.reasons] == ["increase"]


@each_row("agreed", [HELD, OVER])
def test_a_verdict_with_it_is_read_back(agreed):
    built = report(*BAD, baseline=baseline(GOOD), acknowledged=(agreed,))
    assert parse_verdict(render_verdict(built)) == built
