"""What a baseline adds to comment and terminal, case by case, as a reviewer reads it."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import AllowedIncreases
from ci_agent_eval.contract.findings import MissingShards
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
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
)
from tests.compared_reports import steps
from tests.render_reports import LINKS

TEN = range(1, 11)
LAX, NEVER = {"min_pass_rate": 0.1}, {"min_pass_rate": 0.0}


def against(now, *before, **options):
    return report(*now, baseline=baseline(*before), **options)


def allow(now, before, **increases):
    return against(now, before, policy=GatePolicy(increases=AllowedIncreases(**increases)))


def costing(cost, scenarios=6, latency=100):
    turns = [turn(cost_usd=cost, latency_ms=latency)]
    return [
        episode(f"s{n}", iteration=i, trajectory={"turns": turns})
        for n in range(scenarios)
        for i in (1, 2, 3)
    ]


def one_dear(cost):
    costs = (0.01, 0.01, 0.01, cost)
    turns = [{"turns": [turn(cost_usd=cost)]} for cost in costs]
    return [episode(f"s{n}", trajectory=said) for n, said in enumerate(turns)]


def tones(build, numbers=TEN, **fields):
    return [build("tone", iteration=n, **fields) for n in numbers]


def going(scenarios, *names, **fields):
    made = ((f"s{s:02}", n) for s in range(scenarios) for n in TEN)
    return [episode(name, iteration=n, **steps(*names, **fields)) for name, n in made]


def speak(build, *turns):
    return [
        build(trajectory={"turns": [turn(tool_calls=[*map(tool_call, names)]) for names in turns]})
    ]


def repeat(source, *durations):
    fields = {"trajectory": {"turns": [turn(source=source, latency_ms=81.5)]}}
    return against([episode(**fields)], *([episode(duration_ms=n, **fields)] for n in durations))


def in_file(name, test):
    return [episode(nodeid=f"tests/{name}.py::test_{test}", file=f"tests/{name}.py")]


QUIET = {"assertions": [failed_assertion("is polite", reason=None)], **LAX}
DROPPED = [*tones(episode, (1, 2), **LAX), *tones(failing, range(3, 11), **QUIET), episode("other")]
STEADY = [*tones(episode, **LAX), episode("other")]
UNPRICED = [*costing(0.01, 5), *(episode("s5", iteration=i) for i in (1, 2, 3))]
FEW_FAIL = [episode(iteration=n, **LAX) for n in range(1, 20)] + [failing(iteration=20, **LAX)]
AGAIN = finding("shards", where="shards/2", message="it was replaced", blocking=False)
OVER = {"budgets": {"tool_calls": {"used": 6, "limit": 4}}}

ENDINGS = (
    *("KeyError: 'queue' (agent.py:4)", "desk.OrderNotFoundError: 1011", "httpx.ConnectError: refused"),
    "AgentRunError: model_error: the agent failed: KeyError: 'timeout'",
    *("openai.RateLimitError: Error code: 429", "ValueError: HTTP 503 from the model"),
    "the process ended before the episode did",
)  # fmt: skip
BREAKS = {
    "shards": MissingShards((2,), 3),
    "interrupted": "the run ended early",
    "collection_error": "SyntaxError",
}


def end_by(reason):
    """What passed ends in an error now: a crash is worse, of an outage nothing is known."""
    return against([episode(iteration=n, outcome="error", reason=reason) for n in (1, 2)],
                   [episode(iteration=n) for n in (1, 2)])  # fmt: skip


def break_off(kind):
    """What a broken run did not come to has not vanished."""
    told = finding(kind, where="", message=BREAKS[kind])
    both = [episode("stays"), episode("lost")]
    return against(both[:1], both, findings=(told,), manifest=manifest_of("stays", "lost"))


CASES = {
    **{f"an end by {reason}": lambda reason=reason: end_by(reason) for reason in ENDINGS},
    **{f"a run that broke: {kind}": lambda kind=kind: break_off(kind) for kind in BREAKS},
    "a cost that rose": lambda: allow(costing(0.02), costing(0.01), cost=0.5, latency=0.5),
    "a rise that may be chance": lambda: allow(one_dear(0.05), one_dear(0.01), cost=0.5),
    "a figure that is not measured everywhere": lambda: allow(costing(0.01), UNPRICED, cost=0.5),
    "a rise from next to nothing": lambda: against(costing(0.01, latency=125), costing(0.01, latency=0.02)),
    "a regression": lambda: against(DROPPED, STEADY),
    "a regression that only warns": lambda: against(DROPPED, STEADY, policy=GatePolicy(regressions="warn")),
    "other tool calls in many scenarios": lambda: against(going(14, "b", "a"), going(14, "a", "b")),
    "a moved test": lambda: against(in_file("b", "it"), in_file("a", "it")),
    "a test of another name in another file": lambda: against(in_file("b", "other"), in_file("a", "it")),
    "a renamed tool and a new one": lambda: against(going(6, "@find", "<b>ask"), going(6, "look_up")),
    "many new tools": lambda: against(going(6, "look_up", *(f"t{n}" for n in range(8))), going(6, "look_up")),
    "a tool that is called less often": lambda: against([one for n in (1, 2) for one in going(14, "a", "b")[n::3]] + going(14, "a")[::3], going(14, "a", "b")),
    "another name of a tool that was offered": lambda: against(going(6, "find", conditions={"tools": ["find"]}), going(6, "look_up", conditions={"tools": ["look_up"]})),
    "a call of a later turn": lambda: against(speak(failing, "a", "bd"), speak(episode, "a", "bc")),
    "few tries beside the most": lambda: report(*FEW_FAIL),
    "what is not comparable": lambda: against([episode(iteration=n, conditions={"judge": "b"}) for n in (1, 2)], [episode(conditions={"judge": "a"})]),
    "what accepts something": lambda: against(tones(failing, **NEVER), tones(episode, **NEVER), acknowledged=(agreement("tone"), agreement("gone"))),
    "a quarantine that is over": lambda: report(episode("refund", **OVER), quarantine=(in_quarantine("refund", expired=True),)),
    "a shard that was run again": lambda: report(episode(), findings=(AGAIN,)),
    "repeated replays": lambda: repeat("replayed", 1, 2, 3),
    "a copy and a repeated replay": lambda: repeat("replayed", 1, 1, 2),
    "runs that differ": lambda: repeat("live", 1, 2, 3),
}  # fmt: skip


def test_comments_and_terminal_texts_are_the_golden_ones(golden):
    views = {name: build_report_view(build(), LINKS) for name, build in CASES.items()}
    comments = (f"# {name}\n\n{render_comment(view)}\n\n" for name, view in views.items())
    golden("compared/comments.md", "".join(comments))
    texts = (
        f"# {name}\n\n{render_terminal(view, color=False, width=100)}\n\n"
        for name, view in views.items()
    )
    golden("compared/terminal.txt", "".join(texts))
