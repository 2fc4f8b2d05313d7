"""What several runs of a scenario tell together: no recording and no copy counts twice."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.pool import pool_iterations
from tests.builders import episode, failing, loaded, turn
from tests.tables import each_row


def made(number, make=episode, source="replayed", latency=100.0, **fields):
    turns = [{"role": "user", "content": "hi"}]
    turns.append(turn(source=source, latency_ms=latency, cost_usd=0.1, tokens={"input": 1}))
    return make(iteration=number, trajectory={"turns": turns}, **fields)


def facts(*episodes):
    return loaded(*episodes).episodes


def pool(*runs):
    return pool_iterations(enumerate(runs))


def test_a_recording_counts_once_however_often_it_is_replayed():
    run = facts(*(made(n, latency=90.0 + n) for n in (1, 2, 3)))
    found = pool(*[run] * 10)
    calls = [len(one.iterations) for one in found.values["tool_calls"]]
    assert (found.tally.passed, found.repeated, calls) == (3, 27, [3])


@each_row(
    "other",
    [made(1, latency=101.0), made(1, failing), made(1, source="live"), made(1, source="scripted")],
)
def test_what_was_recorded_anew_or_answered_by_a_model_counts(other):
    assert pool(facts(made(1)), facts(other)).tally.judged == 2
    assert pool(facts(other), facts(made(1))).tally.judged == 2


def test_an_iteration_without_a_price_leaves_the_cost_unmeasured():
    priced, unpriced = episode(iteration=1, cost_usd=0.5), episode(iteration=2)
    assert pool(facts(priced)).aggregate("cost_usd") == 0.5
    assert pool(facts(priced, unpriced)).aggregate("cost_usd") is None


def test_an_error_before_there_was_a_price_does_not():
    run = facts(episode(iteration=1, cost_usd=0.5), episode(iteration=2, outcome="error"))
    assert pool(run).aggregate("cost_usd") == 0.5
