"""Whole verdicts as a reviewer reads them: every reason and warning, and the way back from JSON.

What fails closed stands in `test_gate`, with what is expected beside it.
"""

from __future__ import annotations

from dataclasses import replace

from ci_agent_eval.analysis.comparison.model import AllowedIncreases, NoBaseline
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import CollectionSkip, RemovedScenario, Session, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.sentences import describe_finding, describe_reason
from tests.builders import (
    agreement,
    baseline,
    episode,
    evaluated,
    failed_assertion,
    failing,
    finding,
    in_quarantine,
    manifest_of,
    report,
    turn,
)

LAX = {"min_pass_rate": 0.0}
ADVISORY = {"gate": "advisory"}
OVER = {"budgets": {"tool_calls": {"used": 6, "limit": 4}}}
SOFTLY_OVER = {"budgets": {"tool_calls": {"used": 6, "limit": 4, "hard": False}}}
SUITE_RATE = GatePolicy(suite_min_pass_rate=0.75)
A, B, OTHER = episode("a"), episode("b"), episode("other")


def run(passed=1, failed=0, scenario="refund", **fields):
    made = [episode(scenario, iteration=i + 1, **fields) for i in range(passed)]
    return made + [failing(scenario, iteration=passed + i + 1, **fields) for i in range(failed)]


def runs(many, of):
    """Runs of the base that are no copies of each other."""
    return [run(of, duration_ms=number) for number in range(many)]


def five(*outcomes, **fields):
    """Iterations of one test that declares five."""
    return [
        episode(iteration=number, iterations=5, outcome=outcome, **fields)
        for number, outcome in enumerate(outcomes, start=1)
    ]


def cut_short(kind):
    return report(*five("passed", "passed"), findings=(finding(kind),))


def retried(count):
    first = [failing(iteration=n, attempt=1) for n in range(count)]
    return first + [episode(iteration=n, attempt=2) for n in range(count)]


def under(judge, **fields):
    return {"conditions": {"judge": judge}, **LAX, **fields}


def measured(passed, failed, errored=0, skipped=0):
    made = [evaluated("talk", True, iteration=n) for n in range(passed)]
    made += [evaluated("talk", True, False, iteration=passed + n) for n in range(failed)]
    ended = enumerate(["error"] * errored + ["skipped"] * skipped, start=100)
    return made + [evaluated("talk", iteration=n, outcome=outcome) for n, outcome in ended]


def costing(cost, count=2, latency=100, iterations=5):
    fields = {"trajectory": {"turns": [turn(cost_usd=cost, latency_ms=latency)]}}
    return [e for n in range(count) for e in run(iterations, scenario=f"s{n}", **fields)]


def against(now, *before, **options):
    return report(*now, baseline=baseline(*before), **options)


def evaluate(runs, **policy):
    return report(*runs, episode("strict"), policy=GatePolicy(**policy))


def allow(now, before, **increases):
    return against(now, before, policy=GatePolicy(increases=AllowedIncreases(**increases)))


def session(**fields):
    return {"sessions": (Session(state="finished", **fields),)}


def meet(manifest, *episodes, policy=None, quarantine=(), **fields):
    """Hold a run against its manifest."""
    options = {"policy": policy, "quarantine": quarantine, **session(**fields)}
    return report(*episodes, manifest=manifest, **options)


def lower(now, before):
    return against([*now, OTHER], before)


def hold(*now, before=(), expired=False, entry="refund", **options):
    held = (in_quarantine(entry, expired=expired),)
    options |= {"baseline": baseline(before)} if before else {}
    return report(*now, quarantine=held, **options)


def accept(now, before, entry="refund", **options):
    return against(now, before, acknowledged=(agreement(entry, **options),))


def demand(**fields):
    """An episode with demands that a change may weaken: checks, budgets, allowed ends."""
    checks = [{"name": f"check {number}", "passed": True} for number in range(5)]
    own = {
        "assertions": [score(0.95, 0.9), *checks],
        "budgets": LIMITS,
        "allowed_stops": ["max_turns"],
    }
    return episode(**{**own, **fields})


def score(value, threshold=0.5):
    return {"name": "polite", "passed": True, "score": value, "threshold": threshold}


def weaken(now, before=None):
    return against([demand(**now)], [demand(**before or {})])


def rescore(now, before):
    sides = (
        [
            demand(iteration=n, iterations=len(side), assertions=[score(v)])
            for n, v in enumerate(side, 1)
        ]
        for side in (now, before)
    )
    return against(*sides)


def of_cases(*cases, test="tests/test_a.py::test_it", iterations=1, **fields):
    """Episodes of a parametrized scenario; a case is its id, or its id and its parameters."""
    made = []
    for case in cases:
        name, shown = case if isinstance(case, tuple) else (case, f"[{case}]")
        for n in range(1, iterations + 1):
            suffix = f"-{n}-of-{iterations}" if iterations > 1 else ""
            own = {
                "nodeid": f"{test}[{name}{suffix}]",
                "case": shown,
                "file": test.partition("::")[0],
            }
            made.append(episode(iteration=n, iterations=iterations, **own, **fields))
    return made


EASY, HARD = ("c0", "[c='easy']"), ("c1", "[c='hard']")
MOVED, OF_OTHER = {"test": "tests/test_b.py::test_it"}, {"test": "tests/test_b.py::test_other"}
LONE = [episode(nodeid=f"tests/test_{name}.py::test_{name}") for name in ("hard", "easy")]
LIMITS = {"tool_calls": {"limit": 4}, "custom": {"searches": {"used": 1, "limit": 2}}}
FEWER = {"assertions": [score(0.95, 0.9), {"name": "check 0", "passed": True}]}
STOPPED_EARLY = demand(
    iteration=2, iterations=2, outcome="failed", assertions=[failed_assertion()], budgets={}
)
REFUND, BOTH = manifest_of("refund"), manifest_of("refund", "search")
IN_FILES = manifest_of("refund", "other", refund="tests/a.py", other="tests/b.py")
SEARCH = episode("search")
TAKEN, GONE = (RemovedScenario(scenario_id="refund", by=by) for by in ("conftest.py", None))
LACKING = {"evidence": "required", "trajectory": None}
ERRED, SKIPPED = episode(iteration=2, outcome="error"), episode("b", outcome="skipped")
NOT_JUDGED = [episode(iteration=n, outcome="skipped", reason="x") for n in range(3)]
OF_OTHERS = [
    *run(0, 1, "bad-1", **ADVISORY),
    evaluated("measured", False, gate="advisory", outcome="failed"),
    *run(4, scenario="own", min_pass_rate=0.1),
]
TWICE = [episode(iteration=number, iterations=5) for number in range(1, 11)]
OTHER_TEST = [e.model_copy(update={"nodeid": "t.py::other"}) for e in five(*["passed"] * 4)]
BY_HOOK = (RemovedScenario(scenario_id="refund", iterations=2, by="conftest.py"),)
UNPRICED = [*costing(None, 1)[:1], *costing(9.0, 3)[1:]]
BAD, GOOD, MANY = run(0, 20, **LAX), run(20, **LAX), run(50, **LAX)
LESS = [*run(20, **ADVISORY, **LAX), OTHER]
PARTLY = {"total_cost_usd": 2.5}
COSTLY = [
    failing("refund", trajectory={"turns": [turn(cost_usd=2)]}),
    episode("other", trajectory={"turns": [turn(cost_usd=1)]}),
]
EVALUATED = [evaluated("good", True, True), evaluated("refund", False, False)]
HIGH = GatePolicy(eval_min_score=0.9, eval_min_pass_rate=1.0)

CASES = {
    # The policy
    "a finding that does not block": lambda: report(A, findings=(finding("repaired_file", blocking=False),)),
    "a hard budget that was not measured": lambda: report(episode(budgets={"cost_usd": 0.5})),
    "over a budget of the suite": lambda: report(A, budgets=SuiteBudgets(total_wall_time_s=2)),
    "a budget of the suite that was not measured": lambda: report(A, budgets=SuiteBudgets(total_cost_usd=1)),
    "too few passes": lambda: report(*run(3, 2, min_passes=4), policy=GatePolicy(min_pass_rate=0.5)),
    "enough passes for a rate that is not reached": lambda: report(*run(4, 1, min_passes=4)),
    "two agents at one scenario": lambda: report(episode(agent="a"), failing(agent="b")),
    "a suite below its rate": lambda: report(A, B, failing("c"), policy=SUITE_RATE),
    "others do not count in a suite's rate": lambda: report(A, failing("b"), *OF_OTHERS, policy=GatePolicy(suite_min_pass_rate=0.6)),
    "an episode that needs no evidence": lambda: report(episode(**{**LACKING, "evidence": "none"})),
    "no share of errors takes one without evidence in": lambda: report(episode(), episode(iteration=2, **LACKING), policy=GatePolicy(max_error_rate=1.0)),
    "a share of errors": lambda: report(episode(), ERRED, policy=GatePolicy(max_error_rate=1.0)),
    # Evaluations
    "evaluations only inform": lambda: report(*measured(0, 3, errored=1), policy=GatePolicy(max_error_rate=0.25)),
    "evaluations that all errored": lambda: report(*measured(0, 0, errored=2)),
    "the rate of evaluations": lambda: evaluate(measured(4, 1), eval_min_pass_rate=0.8),
    "below the rate of evaluations": lambda: evaluate(measured(3, 1), eval_min_pass_rate=0.8),
    "an errored evaluation within the rate": lambda: evaluate(measured(4, 0, errored=1), eval_min_pass_rate=0.8, max_error_rate=0.2),
    "an errored evaluation did not pass": lambda: evaluate(measured(3, 0, errored=1), eval_min_pass_rate=0.8),
    "skipped evaluations do not count": lambda: evaluate(measured(3, 0, skipped=2), eval_min_pass_rate=1.0),
    "the score of evaluations": lambda: evaluate(measured(1, 1), eval_min_score=0.75),
    "below the score of evaluations": lambda: evaluate(measured(1, 2), eval_min_score=0.75),
    "an errored evaluation has no score": lambda: evaluate(measured(3, 0, errored=1), eval_min_score=0.5),
    "errored evaluations within their share": lambda: evaluate(measured(3, 0, errored=1), eval_min_score=0.5, max_error_rate=0.25),
    "thresholds of zero": lambda: evaluate(measured(0, 3), eval_min_pass_rate=0.0, eval_min_score=0.0),
    "a rate without an evaluation": lambda: evaluate([], eval_min_pass_rate=0.0),
    "a score without one that was judged": lambda: evaluate(measured(0, 0, errored=1, skipped=1), eval_min_score=0.0),
    # Iterations that are missing
    "skipped iterations": lambda: report(*five("passed", *["skipped"] * 4)),
    "iterations that left no episode": lambda: report(*five("passed", "skipped")),
    "skipped iterations that are allowed": lambda: report(*five("passed", *["skipped"] * 4), policy=GatePolicy(allow_skipped=True)),
    "skipped iterations of an advisory scenario": lambda: report(A, *five("passed", *["skipped"] * 4, **ADVISORY)),
    "errored iterations are for the error rate": lambda: report(*five("passed", *["error"] * 4), policy=GatePolicy(max_error_rate=0.8)),
    "a retry is no iteration more": lambda: report(*five("failed", *["passed"] * 3), episode(iteration=1, iterations=5, attempt=2)),
    "each test declares its own iterations": lambda: report(*five(*["passed"] * 5), *OTHER_TEST, episode(nodeid="t.py::once")),
    "a test that was collected twice": lambda: report(*TWICE),
    "a failing scenario that skipped iterations": lambda: report(*five("failed", *["skipped"] * 4)),
    "an interrupted run says so once": lambda: cut_short("interrupted"),
    "a stopped run says so once": lambda: cut_short("stopped"),
    "a run without its shards says so once": lambda: cut_short("shards"),
    "an unreadable file says so once": lambda: cut_short("unreadable_file"),
    "iterations that the command line left out": lambda: report(*five("passed"), **session(restrictions=("-k 1-of-5",))),
    "iterations that a hook took": lambda: report(*five(*["passed"] * 3), **session(restrictions=("-k refund",), removed=BY_HOOK)),
    # The manifest
    "a required scenario that did not run": lambda: meet(BOTH, SEARCH),
    "one that a hook removed": lambda: meet(REFUND, SEARCH, removed=(TAKEN,)),
    "one that some hook removed": lambda: meet(REFUND, SEARCH, removed=(GONE,)),
    **{
        f"one whose file was skipped, {file}": lambda file=file: meet(
            REFUND, SEARCH, collection_skips=(CollectionSkip(file=file, reason="no key"),)
        )
        for file in ("tests/test_refunds.py", "tests", "tests/test_ref")
    },
    "one that is not known": lambda: meet(REFUND, episode(), SEARCH),
    "one that gates no more": lambda: meet(REFUND, SEARCH, episode(**ADVISORY)),
    "one that gates now": lambda: meet(manifest_of(advisory=["refund"]), episode()),
    "one with another name": lambda: meet(REFUND, episode("refund_v2", was=["refund"])),
    "two with another name": lambda: meet(REFUND, episode("new_a", was=["refund"]), episode("new_b", was=["refund"])),
    "one missing in quarantine": lambda: meet(REFUND, SEARCH, quarantine=(in_quarantine("refund"),)),
    "one missing after its quarantine": lambda: meet(REFUND, SEARCH, quarantine=(in_quarantine("refund", expired=True),)),
    **{
        f"a run restricted by {flag}": lambda flag=flag: meet(BOTH, SEARCH, restrictions=(flag,))
        for flag in ("-k search", "--lf", "tests/test_refunds.py::test_search")
    },
    "what a hook took from a restricted run": lambda: meet(BOTH, SEARCH, restrictions=("-k x",), removed=(TAKEN,)),
    **{
        f"a run of {' '.join(paths)}": lambda paths=paths: meet(IN_FILES, SEARCH, paths=paths)
        for paths in (("tests/a.py",), ("tests/b.py",), ("tests",), ("tests/a.py", "tests/b.py"), (".",), ("test",))
    },
    "a partial run where the whole is asked for": lambda: meet(BOTH, SEARCH, policy=GatePolicy(partial="fail"), restrictions=("-k x",)),
    # A baseline
    "no baseline": lambda: report(*run(), baseline=NoBaseline("no file is at evals/base")),
    "a regression within the rate": lambda: against(run(10, 10, **LAX), GOOD),
    "a regression that may warn": lambda: against(run(10, 10, **LAX), MANY, policy=GatePolicy(regressions="warn")),
    "a regression of an advisory scenario": lambda: against(run(10, 10, **ADVISORY), run(50, **ADVISORY)),
    "too few iterations to tell": lambda: against(run(4, 1, **LAX), MANY),
    "a baseline of too few iterations": lambda: against(run(2, 3, **LAX), run(3, **LAX)),
    "what fails by itself needs no doubt": lambda: against(run(0, 1), run(3)),
    "a vanished scenario whatever the policy": lambda: against(run(), [*run(), *run(scenario="gone")], policy=GatePolicy(regressions="warn")),
    "a vanished advisory scenario": lambda: against(run(), [*run(), *run(scenario="gone", **ADVISORY)]),
    "another judge": lambda: against(run(10, 10, **under("b")), run(20, **under("a"))),
    "another model": lambda: against(run(10, 10, model="b", **LAX), run(20, model="a", **LAX)),
    "iterations under other conditions": lambda: against([*run(5, 15, **under("a")), episode(iteration=21, **under("b"))], run(20, **under("a"))),
    "far fewer iterations": lambda: against(run(1), run(20)),
    "iterations that can show no drop any more": lambda: against(run(7), *runs(10, 10)),
    "passing only on a retry": lambda: against(retried(10), run(10)),
    "passing only on a retry as before": lambda: against(retried(10), retried(10)),
    "passing once on a retry": lambda: against([*retried(1), *run(9)], run(10)),
    "not judged any more": lambda: against([*NOT_JUDGED, B], run(10), policy=GatePolicy(allow_skipped=True)),
    "skipped, and not judged any more": lambda: against([*NOT_JUDGED, B], run(10)),
    "newly over budget": lambda: against(run(**SOFTLY_OVER), run()),
    "copies of a run": lambda: against(run(5), run(5), run(5), run(5)),
    # What gated must not stop gating unsaid.
    "advisory now": lambda: lower(run(10, **ADVISORY), run(10)),
    "a lower rate": lambda: lower(run(10, min_pass_rate=0.1), run(10, min_pass_rate=0.9)),
    "a lower rate than all": lambda: lower(run(10, min_pass_rate=0.1), run(10)),
    "fewer passes": lambda: lower(run(10, min_passes=2), run(10, min_passes=9)),
    "as many passes of more iterations": lambda: lower(run(20, min_passes=9), run(10, min_passes=9)),
    "advisory under another name": lambda: lower(run(10, scenario="tone", was=["refund"], **ADVISORY), run(10)),
    "advisory with another model": lambda: lower(run(10, model="b", **ADVISORY), run(10, model="a")),
    "a higher rate": lambda: lower(run(10), run(10, min_pass_rate=0.9)),
    "required now": lambda: lower(run(10), run(10, min_pass_rate=0.5, **ADVISORY)),
    "as advisory as before": lambda: lower(run(10, **ADVISORY), run(10, **ADVISORY)),
    "as many passes as the rate before": lambda: lower(run(10, min_passes=9), run(10, min_pass_rate=0.9)),
    "only the latest run says what was required": lambda: against([*run(**ADVISORY), B], run(**ADVISORY), run()),
    # Cases of a scenario that the baseline knows
    "the same cases": lambda: against(of_cases("a", "b"), of_cases("a", "b")),
    "another case": lambda: against(of_cases("a", "c"), of_cases("a", "b")),
    "far fewer cases": lambda: against(of_cases("a"), of_cases(*"abcde")),
    "fewer iterations of the same cases": lambda: against(of_cases("a", "b"), of_cases("a", "b", iterations=2)),
    "other parameters of a case": lambda: against(of_cases(EASY, ("c1", "[c='easier']")), of_cases(EASY, HARD)),
    "other ids of the same parameters": lambda: against(of_cases(("c0", "[c='new']"), ("c1", EASY[1]), ("c2", HARD[1])), of_cases(EASY, HARD)),
    "a moved test with its cases": lambda: against(of_cases("a", "b", **MOVED), of_cases("a", "b")),
    "a renamed test with its cases": lambda: against(of_cases("a", "b", test="tests/test_a.py::test_other"), of_cases("a", "b")),
    "a moved test without a case": lambda: against(of_cases("a", **MOVED), of_cases("a", "b")),
    "another test of another file": lambda: against(of_cases("a", "b", **OF_OTHER), of_cases("a", "b")),
    "another test without cases": lambda: against(LONE[1:], LONE[:1]),
    "one of two tests is gone": lambda: against(of_cases("a"), of_cases("a") + of_cases("a", **OF_OTHER)),
    "cases without parameters": lambda: against(of_cases(EASY), of_cases(("c0", None), ("c1", None))),
    "a lost case of an advisory scenario": lambda: against(of_cases("a", **ADVISORY), of_cases("a", "b", **ADVISORY)),
    "a case that was left out": lambda: against(of_cases("a"), of_cases("a", "b"), **session(left_out=("refund[b]",))),
    "a case of a restricted run": lambda: against(of_cases("a"), of_cases("a", "b"), **session(restrictions=("-k a",))),
    "a test of the same id in another file": lambda: meet(manifest_of("refund", refund="tests/test_old.py"), episode()),
    "a test of the same id in another file, too": lambda: meet(REFUND, episode(), episode(nodeid="tests/test_old.py::test_it", file="tests/test_old.py")),
    # A change that requires less is told, and does not gate.
    "the same demands": lambda: weaken({}),
    "a higher limit": lambda: weaken({"budgets": {**LIMITS, "tool_calls": {"limit": 40}}}),
    "a lower limit": lambda: weaken({"budgets": {**LIMITS, "tool_calls": {"limit": 3}}}),
    "no limits": lambda: weaken({"budgets": {}}),
    "a soft limit": lambda: weaken({"budgets": {**LIMITS, "tool_calls": {"limit": 4, "hard": False}}}),
    "fewer checks": lambda: weaken(FEWER),
    "more checks": lambda: weaken({}, FEWER),
    "a lower threshold": lambda: weaken({"assertions": [score(0.95, 0.4)]}, {"assertions": [score(0.95)]}),
    "a higher threshold": lambda: weaken({"assertions": [score(0.95, 0.6)]}, {"assertions": [score(0.95)]}),
    "a further end": lambda: weaken({"allowed_stops": ["timeout", "max_turns"]}),
    "no end that is allowed": lambda: weaken({"allowed_stops": []}),
    "fewer checks of the same test in another file": lambda: weaken({**FEWER, "nodeid": "tests/test_b.py::test_refund"}),
    "an episode that stopped early shows no demands": lambda: against([demand(iterations=2), STOPPED_EARLY], [demand()]),
    "lower scores": lambda: rescore([0.52, 0.6], [0.95, 0.93]),
    "a low score as before": lambda: rescore([0.52], [0.95, 0.5]),
    "a score that is a little lower": lambda: rescore([0.9], [0.95]),
    "a higher score": lambda: rescore([0.95], [0.6]),
    # Cost and latency
    "a rise without a limit": lambda: allow(costing(1.1), costing(1.0)),
    "a rise within its limit": lambda: allow(costing(1.1), costing(1.0), cost=0.2),
    "a rise of one scenario": lambda: allow(costing(1.1, 1), costing(1.0, 1), cost=0.05),
    "a rise of two scenarios": lambda: allow(costing(1.1), costing(1.0), cost=0.05),
    "a cost that is not measured": lambda: allow(costing(None), costing(1.0), cost=9),
    "a cost from nothing": lambda: allow(costing(0.1), costing(0.0), cost=9),
    "a latency that rose": lambda: allow(costing(1, latency=200), costing(1), latency=0.5),
    "a rise that chance may explain": lambda: allow(costing(1.5, 1, iterations=1), costing(1.0, 1, iterations=1), cost=0.1),
    "one iteration without a price": lambda: allow(UNPRICED, costing(9.0, 3), cost=0.1),
    # Quarantine
    "a failure in quarantine": lambda: hold(failing("refund"), OTHER),
    "an error in quarantine": lambda: hold(episode("refund", outcome="error", reason="429"), OTHER),
    "a skip in quarantine": lambda: hold(episode("refund", outcome="skipped"), OTHER),
    "over budget in quarantine": lambda: hold(episode("refund", **OVER), OTHER),
    "it costs": lambda: hold(*COSTLY, budgets=SuiteBudgets.model_validate(PARTLY)),
    "a quarantine that is over": lambda: hold(failing("refund"), expired=True),
    "passing after its quarantine": lambda: hold(episode("refund"), expired=True),
    "a regression in quarantine": lambda: hold(*BAD, OTHER, before=GOOD),
    "a quarantine is no downgrade": lambda: hold(*run(10), B, before=run(10)),
    "a quarantine hides no downgrade": lambda: hold(*run(10, **ADVISORY), B, before=run(10)),
    "one agent in quarantine": lambda: report(failing(agent="a"), failing(agent="b"), quarantine=(in_quarantine(agent="a"),)),
    "thresholds without quarantine": lambda: report(*EVALUATED, policy=HIGH),
    "thresholds are about those out of quarantine": lambda: hold(*EVALUATED, policy=HIGH),
    "all in quarantine": lambda: hold(failing("refund"), entry="*"),
    "entries about nothing": lambda: report(OTHER, quarantine=(in_quarantine("refund*", agent="x"), in_quarantine("oth*"))),
    "an entry that another shard may have": lambda: report(A, quarantine=(in_quarantine("b"),), **session(selected=1, shard=Shard(index=1, count=2))),
    # Acknowledgement
    "an acknowledged regression": lambda: accept(BAD, MANY),
    "a regression acknowledged until yesterday": lambda: accept(BAD, MANY, expired=True),
    "an acknowledged loss": lambda: accept([OTHER], MANY),
    "a loss acknowledged until yesterday": lambda: accept([OTHER], MANY, expired=True),
    "an acknowledged downgrade": lambda: accept(LESS, MANY),
    "a downgrade acknowledged until yesterday": lambda: accept(LESS, MANY, expired=True),
    "below its own rate, acknowledged": lambda: accept(run(0, 20), GOOD),
    "an acknowledgement of another scenario": lambda: accept(BAD, GOOD, entry="other"),
    "an acknowledgement without a baseline": lambda: report(*GOOD, acknowledged=(agreement(),)),
    "an acknowledgement without a comparison": lambda: report(*GOOD, baseline=NoBaseline("none"), acknowledged=(agreement(),)),
    "the suite's own figures cannot be acknowledged": lambda: against(GOOD, GOOD, policy=GatePolicy(increases=AllowedIncreases(cost=0.1)), acknowledged=(agreement("*"),)),
}  # fmt: skip


def refuse_a_claim(built):
    """Claim success against the content of a report; returns why that is not believed.

    None where it is: the policy for errors and skips stands in no verdict, for example.
    """
    verdict = replace(built.verdict, conclusion="success", reasons=())
    try:
        parse_verdict(render_verdict(replace(built, verdict=verdict)))
    except InputError as error:
        place, _, why = str(error).partition("it claims success, but ")
        assert why, place
        return why
    return None


def describe(name, built):
    lines = [f"{name}: {built.verdict.conclusion}"]
    for one in built.verdict.judgements:
        agent = f" by {one.agent}" if one.agent else ""
        lines.append(f"  {one.scenario_id}{agent}: {one.gate}, {one.status}")
    for kind in ("reasons", "warnings"):
        for one in getattr(built.verdict, kind):
            whose = " ".join(part for part in (one.scenario_id, one.agent) if part)
            lines.append(f"  {kind[:-1]} {one.kind} {whose}".rstrip() + f": {describe_reason(one)}")
    found = built.summary.findings
    lines += [f"  finding {one.kind} {one.where}: {describe_finding(one)}" for one in found]
    if not built.passed and (why := refuse_a_claim(built)):
        lines.append(f"  a claim of success is refused: {why}")
    return "\n".join(lines)


def test_the_verdicts_are_the_golden_ones(golden):
    built = {name: build() for name, build in CASES.items()}
    golden("gate/verdicts.txt", "".join(f"{describe(*item)}\n\n" for item in built.items()))
    for name, one in built.items():
        assert parse_verdict(render_verdict(one)) == one, name
        assert one.passed is not bool(one.verdict.reasons), name
