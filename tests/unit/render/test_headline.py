"""The verdict in one sentence."""

from __future__ import annotations

from dataclasses import replace

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import MissingShards, RepeatedShard, StoppedRun
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import COST_STOP, baseline, episode, evaluated, failing, finding, report
from tests.render_reports import HOSTILE, hostile, no_results
from tests.tables import each_row

NO_EPISODES = {"sources": (), "sessions": ()}
OVER = {"tool_calls": {"used": 5, "limit": 4}}
SOFT = {"tool_calls": {"used": 5, "limit": 4, "hard": False}}
CASES = (JUnitCase("c", "a", "failed"), JUnitCase("c", "b", "error"))


def of_shards(message):
    return report(episode(), findings=(finding("shards", where="", message=message),))


SENTENCES = {
    "passed: 1 of 1 scenario": lambda: report(episode()),
    "passed: 12 of 12 scenarios": lambda: report(*(episode(f"s{n % 12}", iteration=n) for n in range(60))),
    "failed: 1 of 12 scenarios fails, 1 over budget": lambda: report(failing("a"), *(episode(f"s{n}", budgets=OVER if n == 1 else {}) for n in range(11))),
    "passed: 1 of 2 scenarios, 1 of 2 iterations pass (50.0 % required)": lambda: report(episode("a"), failing("b"), policy=GatePolicy(suite_min_pass_rate=0.5)),
    "failed: 1 of 3 scenarios fails, 1 of 2 iterations pass (90.0 % required)": lambda: report(episode("a"), failing("b"), failing("c", min_passes=1), policy=GatePolicy(suite_min_pass_rate=0.9)),
    "failed: 2 of 3 scenarios fail, all for one reason, 1 budget not measured": lambda: report(failing("a"), failing("b"), episode("c", budgets={"cost_usd": 1})),
    "failed: 1 episode ended in an error, 1 of 3 scenarios was skipped": lambda: report(episode("a", outcome="error"), episode("b", outcome="skipped"), episode("c")),
    "failed: 2 episodes ended in an error": lambda: report(*(episode("a", iteration=n, outcome="error" if n < 3 else "passed") for n in range(1, 9))),
    "failed: no results were found": no_results,
    "failed: no episode was found": report,
    "Tests failed: none of 2 tests ran": lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(skipped=2))),
    "failed: none of 1 episode was judged": lambda: report(episode(outcome="skipped"), policy=GatePolicy(allow_skipped=True)),
    "failed: 3 of 120 tests fail": lambda: report(episode(), tests=PlainTests(OutcomeTally(117, 3), CASES)),
    "Tests failed: 1 of 120": lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(119, 0, 1), CASES)),
    "Tests passed: 120 of 120": lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(120))),
    "Tests passed: 118 of 120, 2 skipped": lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(118, 0, 0, 2))),
    "passed: 2 episodes, 2 advisory fail": lambda: report(failing("a", gate="advisory"), failing("b", gate="advisory")),
    "passed: 1 of 1 scenario, 1 soft budget exceeded": lambda: report(episode("a", budgets=SOFT)),
    "failed: 1 suite budget not measured": lambda: report(episode(), budgets=SuiteBudgets.model_validate({"total_tokens": 5})),
    "passed: 1 of 3 conversations (average score 0.75), 1 episode ended in an error": lambda: report(evaluated("a", True), evaluated("b", False, True), evaluated("c", outcome="error"), policy=GatePolicy(max_error_rate=0.5)),
    "passed: 1 of 1 scenario, 0 of 1 conversation (average score 0.00), 1 advisory fails": lambda: report(episode(), evaluated("a", False), failing("b", gate="advisory")),
    "failed: 0 of 1 evaluation conversations passed, 80 % required": lambda: report(evaluated("a", False), episode(), policy=GatePolicy(eval_min_pass_rate=0.8)),
    "failed: the evaluations' average score is 0.998008, 0.999 required": lambda: report(*(evaluated("a", n > 0, True, iteration=n) for n in range(251)), policy=GatePolicy(eval_min_score=0.999)),
    "failed: no evaluation conversation was judged (1 errored, 0 skipped), but a threshold is set and 1 more reason": lambda: report(evaluated("a", outcome="error"), episode(), policy=GatePolicy(eval_min_score=0.5)),
    "failed: 1 of 2 evaluation conversations ended in an error, 0 % allowed": lambda: report(evaluated("a"), evaluated("b", outcome="error")),
    "failed: the run was interrupted (1 episode judged), 2 result files cannot be read": lambda: report(episode(), findings=(finding("interrupted"), finding("unreadable_file"), finding("unreadable_file", where="b"))),
    "failed: a suite budget stopped the run (6 of 1,234 episodes did not run)": lambda: report(episode(), findings=(finding("stopped", message=StoppedRun(COST_STOP, 1234, 6)),)),
    "failed: a suite budget stopped the run": lambda: report(episode(), findings=(finding("stopped", message=StoppedRun(COST_STOP, None, 0)),)),
    "failed: suite budgets stopped 2 runs": lambda: report(episode(), findings=(finding("stopped"), finding("stopped", where="b"))),
    "failed: shard 3 of 7 is missing": lambda: of_shards(MissingShards((3,), 7)),
    "failed: shards 3, 5 of 7 are missing": lambda: of_shards(MissingShards((3, 5), 7)),
    "failed: 6 of 9 shards are missing": lambda: of_shards(MissingShards((1, 2, 3, 4, 5, 6), 9)),
    "failed: shard 2 of 7 is there 2 times": lambda: of_shards(RepeatedShard(2, 7, 2)),
    # Nobody reads a sentence, whatever it says.
    "failed: the shards are not one whole run": lambda: of_shards("shard 3 of 7 left no results; do"),
    "passed: 1 of 1 scenario, 1 result file was repaired": lambda: report(episode(), findings=(finding("repaired_file", blocking=False),)),
}  # fmt: skip


@each_row("sentence", SENTENCES)
def test_sentence(sentence):
    title = "" if sentence.startswith("Tests") else "Agent evals "
    assert render_headline(SENTENCES[sentence]()) == f"{title}{sentence}"


def test_the_title_is_an_input_and_tests_alone_name_no_agent():
    tests = report(**NO_EPISODES, tests=PlainTests(OutcomeTally(119, 1), CASES[:1]))
    assert render_headline(tests) == "Tests failed: 1 of 120"
    assert render_headline(replace(tests, title="Checkout")) == "Checkout failed: 1 of 120"
    assert "gent" not in render_comment(build_report_view(tests)).replace("agent-eval", "")


def test_what_failed_before_and_what_fails_anew_are_told_apart():
    base = baseline([*(episode(name) for name in "abc"), failing("d")])
    built = report(*(failing(name) for name in "abd"), episode("c"), baseline=base)
    assert render_headline(built) == (
        "Agent evals failed: 2 of 4 scenarios newly fail, all for one reason, 1 still fails"
    )


def test_no_text_of_others_is_in_it():
    assert render_headline(hostile("x")) == render_headline(hostile(HOSTILE))
