"""Variants side by side, in words."""

from __future__ import annotations

import pytest

from ci_agent_eval.render.markdown import variants as markdown
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal import variants as terminal
from ci_agent_eval.render.terminal.layout import TerminalStyle
from tests.builders import episode, failing, live, report

PLAIN = TerminalStyle(100, color=False)


def ran(agent, passes, iterations=1, scenarios=1, **overrides):
    """Episodes of a variant, of which the first `passes` of each scenario pass."""
    return [
        (episode if number <= passes else failing)(
            f"s{at}",
            agent=agent,
            nodeid=f"tests/test_x.py::test_{at}[{agent}]",
            iteration=number,
            iterations=iterations,
            **overrides,
        )
        for at in range(scenarios)
        for number in range(1, iterations + 1)
    ]


def view(*groups):
    return build_report_view(report(*(one for group in groups for one in group))).variants


def test_variants_that_were_not_judged_are_counted():
    shown = view(
        ran("a", 1, outcome="skipped", reason="no key"),
        ran("b", 1),
        ran("c", 1),
    )
    assert [(table.first, table.second) for table in shown.tables] == [("b", "c")]
    assert shown.rest == (
        "1 variant not compared: without judged iterations, or after the first 50 pairs"
    )


RENDERERS = {
    "terminal": lambda shown: "\n".join(terminal.render_variants(shown, PLAIN)),
    "markdown": lambda shown: markdown.render_variants(shown, 10).replace("`", ""),
}


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
def test_the_header_names_the_direction_of_the_difference(render):
    shown = view(ran("control", 4, 4), ran("candidate", 0, 4))
    assert "control − candidate" in render(shown)
    assert "+100.0 pp" in render(shown)


@pytest.mark.parametrize(
    ("scenarios", "iterations", "passes", "row"),
    [
        # The same difference in all scenarios: no interval, and never another word than theirs.
        (8, 10, (0, 10), ("0.0 %", "100.0 %", "+100.0 pp", "tested in each scenario")),
        (6, 1, (1, 1), ("100.0 %", "100.0 %", "±0.0 pp", "")),
        (10, 2, (0, 2), ("0.0 %", "100.0 %", "+100.0 pp", "certain")),
        (3, 10, (0, 10), ("0.0 %", "100.0 %", "+100.0 pp", "tested in each scenario")),
        # With one scenario both lines are about the same iterations.
        (1, 10, (0, 10), ("0.0 %", "100.0 %", "+100.0 pp", "certain")),
        (1, 2, (0, 2), ("0.0 %", "100.0 %", "+100.0 pp", "inconclusive")),
    ],
)
def test_the_pass_rate_does_not_contradict_the_scenarios(scenarios, iterations, passes, row):
    (table,) = view(
        ran("a", passes[0], iterations, scenarios), ran("b", passes[1], iterations, scenarios)
    ).tables
    rate = table.rows[0]
    assert (rate.first, rate.second, rate.difference, rate.certainty) == row
    if row[-1] != "certain" or scenarios == 1:
        assert all(bool(s.certainty) == (iterations == 10) for s in table.scenarios)


def test_a_figure_names_the_scenarios_that_measured_it():
    (table,) = view(
        *(ran(agent, 1, 1, 3) for agent in "ab"),
        *(
            [
                episode("paid", agent=agent, nodeid=f"t.py::t[{agent}]", trajectory=live(0.01))
                for agent in "ab"
            ],
        ),
    ).tables
    labels = [row.label for row in table.rows]
    assert "pass rate" in labels
    assert "cost per episode (in 1 of 4)" in labels


def test_adaptive_iterations_show_that_only_the_first_count():
    adaptive = {"minimum_iterations": 2}
    (table,) = view(
        ran("a", 2, 6, **adaptive),
        [one for one in ran("b", 0, 6, **adaptive) if one.iteration <= 2],
    ).tables
    (row,) = table.scenarios
    assert (row.first, row.second) == ("2 of the first 2", "0 of the first 2")
    assert table.rows[0].first == "100.0 %"


def test_two_different_figures_look_different():
    """450.2 and 450.4 tokens are not both 450 without a word on the difference."""
    (table,) = view(
        *(
            [
                one
                for number in range(1, 6)
                for one in ran(agent, 1, trajectory=live(0.01, tokens=400 + (number <= more)))
                for one in [one.model_copy(update={"iteration": number})]
            ]
            for agent, more in (("a", 1), ("b", 2))
        )
    ).tables
    (tokens,) = (row for row in table.rows if row.label == "tokens per episode")
    assert (tokens.first, tokens.second, tokens.certainty) == ("450.2", "450.4", "inconclusive")


LONG = "openai/" + "x" * 80 + "-{}-2026-01-01"
SAME = "openai/" + "x" * 40 + "{}" + "x" * 40


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
@pytest.mark.parametrize("name", [LONG, SAME])
def test_long_names_stay_different(name, render):
    shown = view(*(ran(name.format(word), 1) for word in ("mini", "nano")))
    header = render(shown).splitlines()[:6]
    assert "more characters" not in "".join(header)
    if name is LONG:
        assert shown.tables[0].second.endswith("-nano-2026-01-01")
    else:
        assert "1: openai/" in "".join(header)
        assert "2: openai/" in "".join(header)
