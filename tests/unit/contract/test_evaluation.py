"""`eval-results.json`: the seed's shape to the letter, and the same bytes for any order."""

from __future__ import annotations

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.contract.evaluation import (
    EvaluationReport,
    build_evaluation_report,
    is_rendered_evaluation,
    render_evaluation,
)
from tests.builders import episode, evaluated
from tests.tables import each_row


def written(*episodes):
    return json.loads(render_evaluation(build_evaluation_report(episodes)))


SHAPE = r"""{
  "totalConversations": 2,
  "passedConversations": 0,
  "passRate": 0,
  "averageScore": 0.5,
  "conversations": [
    {
      "name": "Build incrementally",
      "passed": false,
      "score": 0,
      "assertions": [],
      "duration": 0,
      "error": "Refused: \u00fcber"
    },
    {
      "name": "Create basic diagram",
      "passed": false,
      "score": 0.5,
      "assertions": [
        {
          "description": "assertion 1",
          "passed": true,
          "score": 1
        },
        {
          "description": "assertion 2",
          "passed": false,
          "score": 0,
          "reason": "it did not"
        }
      ],
      "duration": 1500
    }
  ]
}
"""


def test_the_shape_is_the_seed_s_in_its_order_and_spelling():
    text = render_evaluation(
        build_evaluation_report(
            [
                evaluated("Create basic diagram", True, False, duration_ms=1500),
                evaluated("Build incrementally", outcome="error", reason="Refused: über"),
            ]
        )
    )
    assert text == SHAPE
    assert is_rendered_evaluation(text)


def test_no_evaluation_at_all_is_zeros():
    assert written(episode("strict")) == {
        "totalConversations": 0,
        "passedConversations": 0,
        "passRate": 0,
        "averageScore": 0,
        "conversations": [],
    }


def test_shares_are_rounded_to_six_decimals():
    found = written(evaluated("a"), evaluated("b", False, True, True), evaluated("c", False))
    assert (found["passRate"], found["averageScore"]) == (33.333333, 0.555556)


@each_row(
    ("fields", "passed", "score", "error"),
    [
        ({}, True, 1, None),
        ({"outcome": "failed", "reason": "XPASS"}, False, 0, "XPASS"),
        ({"outcome": "error", "reason": "refused"}, False, 0, "refused"),
        ({"outcome": "error"}, False, 0, "no reason given"),
    ],
)
def test_a_conversation_without_assertions_is_as_it_ended(fields, passed, score, error):
    (found,) = written(evaluated("a", **fields))["conversations"]
    assert (found["passed"], found["score"], found.get("error")) == (passed, score, error)


@each_row(
    "change",
    [
        lambda text: text.removesuffix("\n"),  # as JSON.stringify writes it
        lambda text: text.replace("  ", "\t"),
        lambda text: text.replace('"passRate": 100', '"passRate": 100.0'),
        lambda text: text.replace('"passRate"', '"pass_rate"'),
        lambda text: "",
        lambda text: "[" * 100_000,
    ],
)
def test_a_file_that_others_wrote_is_told_from_ours(change):
    text = render_evaluation(build_evaluation_report([evaluated("a")]))
    assert is_rendered_evaluation(text)
    assert not is_rendered_evaluation(change(text))


EPISODES = st.lists(
    st.builds(
        lambda name, scores, **fields: evaluated(
            name,
            assertions=[
                {"name": "x", "passed": score >= 0.5, "score": score, "reason": "ü\u2028"}
                for score in scores
            ],
            **fields,
        ),
        st.sampled_from(["a", "b", "ü"]),
        st.lists(st.floats(0, 1), max_size=4),
        nodeid=st.sampled_from([None, "t.py::x", "t.py::y"]),
        iteration=st.integers(1, 2),
        attempt=st.integers(1, 3),
        mode=st.sampled_from(["evaluation", "strict"]),
        outcome=st.sampled_from(["passed", "failed", "error", "skipped"]),
        duration_ms=st.none() | st.floats(0, 1e6),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(EPISODES.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_any_order_gives_the_same_bytes_and_the_counts_add_up(orders):
    first, second = (build_evaluation_report(order) for order in orders)
    text = render_evaluation(first)
    assert text == render_evaluation(second)
    assert EvaluationReport.model_validate_json(text) == first
    assert is_rendered_evaluation(text)
    conversations = first.conversations
    passed = sum(conversation.passed for conversation in conversations)
    assert (first.total_conversations, first.passed_conversations) == (len(conversations), passed)
    assert math.isclose(first.pass_rate * len(conversations), 100 * passed, abs_tol=1e-4)
    assert 0 <= first.average_score <= 1
