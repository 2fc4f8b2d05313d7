"""Changes of latency and cost, over the suite and in single scenarios, through the CLI."""

from __future__ import annotations

import random
import re

from tests.builders import episode, turn


def run_suite(seed, *, slower=1.0, dear=(), turns=3):
    """Return 40 scenarios of 1 to `turns` turns; those in `dear` cost five times as much."""
    draw = random.Random(seed)
    usual = [random.Random(f"scenario {n}").lognormvariate(6, 0.5) for n in range(40)]
    return [
        episode(
            f"s{number:03}",
            iteration=iteration,
            trajectory={
                "turns": [
                    turn(
                        latency_ms=slower * latency * draw.lognormvariate(0, 0.8),
                        cost_usd=(0.05 if number in dear else 0.01) * draw.lognormvariate(0, 0.3),
                    )
                    for _ in range(draw.randint(1, turns))
                ]
            },
        )
        for number, latency in enumerate(usual)
        for iteration in range(1, 6)
    ]


def list_reasons(verdict, part="reasons"):
    return [
        (reason["kind"], reason["scenario_id"], reason["message"])
        for reason in verdict["verdict"][part]
    ]


def test_half_as_slow_again_is_red_with_eight_runs_of_the_base(compared):
    code, verdict, _ = compared(
        run_suite("head", slower=1.5),
        *(run_suite(n) for n in range(8)),
        options=("--max-latency-increase", "0.1"),
    )
    ((kind, scenario, message),) = list_reasons(verdict)
    assert (code, kind, scenario) == (1, "increase", None)
    assert re.fullmatch(r"p95 turn latency rose by \d+ % or more, 10 % allowed", message)


def test_an_unchanged_suite_stays_quiet_under_every_limit(compared):
    limits = ("cost", "latency", "typical-latency", "scenario-cost", "scenario-latency")
    options = [part for name in limits for part in (f"--max-{name}-increase", "0")]
    code, verdict, _ = compared(run_suite(0), *(run_suite(n) for n in (1, 2)), options=options)
    assert (code, list_reasons(verdict)) == (0, [])


def test_a_scenario_that_costs_five_times_as_much_is_named(compared):
    """Of 40 scenarios: a folded +10 % of the suite."""
    head = run_suite("head", dear=[7])
    code, verdict, text = compared(head, run_suite(1))
    assert code == 0
    ((kind, scenario, message),) = list_reasons(verdict, "warnings")
    assert (kind, scenario) == ("scenario_increase", "s007")
    assert re.match(r"cost ×[3-7]\.\d", message)
    assert re.search(r"- `s007`: cost ×[3-7]\.\d", text)
    assert re.search(r"\*\*Worse:\*\* .*`s007` \(?×[3-7]\.\d", text)
