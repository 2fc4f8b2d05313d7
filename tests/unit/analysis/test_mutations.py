"""Mutants: each kind of change, and what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.mutations.answers import (
    CANARY,
    change_numbers,
    contradict_text,
)
from ci_agent_eval.analysis.mutations.derive import MAX_PLACES, build_plan, derive_tests
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.mutations import Mutation
from ci_agent_eval.redaction import Redactor
from tests.builders import calling, episode, failing, talk, tool_call, turn

LOOKUP = tool_call("lookup", arguments={"order": 1001}, id="a")
REFUND = tool_call("refund", arguments={"order": 1001, "to": {"name": "Ada", "now": True}}, id="b")


OTHER = episode("other", nodeid="z.py::test")


def refund_talk() -> Episode:
    return talk(
        "order 1001",
        turn("It was $39. Shall I refund it?", tool_calls=[LOOKUP], latency_ms=5),
        "yes",
        turn("", tool_calls=[REFUND], cost_usd=0.1, tokens={"input": 7, "output": 2}),
        turn("Done: 39 dollars are on their way.", cost_usd=0.1),
    )


def mutants(item, kind):
    (test, _) = derive_tests([item, OTHER])
    return [m for m in test.mutants if m.mutation.kind == kind]


def names(mutant):
    return [[c.name for c in t.tool_calls] for t in mutant.trajectory.turns]


def texts(mutant):
    return [t.content for t in mutant.trajectory.turns if t.role == "assistant"]


def test_a_dropped_call_leaves_no_empty_turn():
    first, second = mutants(refund_talk(), "drop_call")
    assert first.mutation == Mutation(kind="drop_call", call=1, tool="lookup")
    assert names(first) == [[], [], [], ["refund"], []]
    assert names(second) == [[], ["lookup"], [], []]


def test_the_only_answer_stays_though_its_call_is_dropped():
    (found,) = mutants(talk("go", turn("", tool_calls=[LOOKUP])), "drop_call")
    assert names(found) == [[], []]


def test_a_repeated_call_has_an_id_that_no_other_call_has():
    first, _ = mutants(refund_talk(), "repeat_call")
    assert [c.id for c in first.trajectory.turns[1].tool_calls] == ["a", "a-2"]


def test_neighbouring_calls_are_exchanged_also_between_turns():
    (found,) = mutants(refund_talk(), "reorder_calls")
    assert names(found) == [[], ["refund"], [], ["lookup"], []]
    assert found.mutation.other == "refund"


def test_equal_calls_have_no_order():
    assert mutants(calling(LOOKUP, LOOKUP), "reorder_calls") == []


def test_each_value_in_the_arguments_becomes_another_of_its_type():
    found = mutants(refund_talk(), "change_argument")
    assert [(m.mutation.argument, m.mutation.before, m.mutation.after) for m in found] == [
        ("order", 1001, 1002),
        ("order", 1001, 1002),
        ("to.name", "Ada", "another name"),
        ("to.now", True, False),
    ]
    assert found[3].trajectory.turns[3].tool_calls[0].arguments == {
        "order": 1001,
        "to": {"name": "Ada", "now": False},
    }


def test_arguments_that_are_one_value_are_changed_as_a_whole():
    (found,) = mutants(calling(tool_call(arguments="raw text")), "change_argument")
    assert (found.mutation.argument, found.mutation.after) == ("arguments", "another value")


def test_without_the_confirmation_the_call_is_made_beside_the_question():
    (found,) = mutants(refund_talk(), "skip_confirmation")
    assert names(found) == [[], ["lookup", "refund"], [], []]
    assert texts(found) == [
        "It was $39. Shall I refund it?",
        "Done: 39 dollars are on their way.",
    ]
    assert (found.mutation.answer, found.mutation.tool) == (1, "refund")


def test_the_answer_to_an_open_question_is_no_confirmation():
    item = talk("hi", turn("Which order?"), "1001", turn("Done.", tool_calls=[REFUND]))
    assert mutants(item, "skip_confirmation") == []


def test_a_contradicted_answer_has_other_numbers_or_says_the_contrary():
    found = mutants(refund_talk(), "contradict_answer")
    assert [m.mutation.after for m in found] == [
        "Done: 49 dollars are on their way.",
        "Done: 39 dollars are not on their way.",
    ]


@pytest.mark.parametrize(
    ("text", "contrary"),
    [
        ("Your line is fine. Is there anything else?", "Your line is not fine. Is there anything else?"),
        ("I did not move it.", "I did move it."),
        ("I can't.", "I can."),
        ("I won\u2019t.", "I will."),
        ("It isn't here.", "It is here."),
        ("Done.", "It is not true that: Done."),
        ("What is it?", "What is it?"),
    ],
)  # fmt: skip
def test_the_contrary_of_the_last_sentence_that_is_no_question(text, contrary):
    assert contradict_text(text) == contrary


def test_other_numbers_are_as_long():
    assert change_numbers("$1,500.00 at 9:30 for 0") == "$2,500.00 at 1:30 for 1"


def test_a_truncated_answer_is_its_first_half():
    (found,) = mutants(refund_talk(), "truncate_answer")
    assert texts(found)[-1] == "Done: 39 dollars"


def test_a_leaked_secret_has_the_shape_of_one_and_is_not_in_the_report():
    (found,) = mutants(refund_talk(), "leak_secret")
    assert CANARY in texts(found)[-1]
    assert CANARY not in Redactor().text(texts(found)[-1])
    assert CANARY not in found.mutation.model_dump_json()


def test_the_last_answers_of_two_scenarios_are_swapped():
    (found,) = mutants(refund_talk(), "swap_answers")
    assert (texts(found)[-1], found.mutation.other) == ("hi", "other")


def test_the_answers_of_variants_are_not_swapped():
    first, second = (
        talk("go", turn(text), nodeid=f"t.py::test[{text}]", agent=text) for text in ("12", "13")
    )
    for test in derive_tests([first, second]):
        assert "swap_answers" in test.not_applicable


def test_more_is_spent_of_each_measured_budget():
    found = {m.mutation.budget: m.trajectory for m in mutants(refund_talk(), "exceed_budget")}
    assert set(found) == {"max_turns", "tool_calls", "latency_ms", "token_usage", "cost_usd"}
    assert found["cost_usd"].agent_turns[-1].cost_usd == pytest.approx(1)
    assert found["token_usage"].agent_turns[1].tokens.input == 70
    assert found["latency_ms"].agent_turns[0].latency_ms == 50
    assert sum(1 for _ in found["tool_calls"].tool_calls()) == 20
    assert len(found["max_turns"].agent_turns) == 30


def test_a_conversation_without_calls_and_figures_is_only_contradicted():
    (test, _) = derive_tests([talk("hi", turn("Yes")), OTHER])
    assert {m.mutation.kind for m in test.mutants} == {
        "contradict_answer", "leak_secret", "swap_answers",
    }  # fmt: skip
    assert test.not_applicable == (
        "drop_call", "repeat_call", "reorder_calls", "change_argument", "skip_confirmation",
        "truncate_answer", "exceed_budget",
    )  # fmt: skip


def test_of_many_places_evenly_spread_ones_are_chosen():
    calls = [tool_call(f"t{n}", arguments=None) for n in range(21)]
    (test,) = derive_tests([calling(*calls)])
    dropped = [m.mutation.call for m in test.mutants if m.mutation.kind == "drop_call"]
    assert dropped == [1, 6, 11, 16, 21]
    assert test.left_out["drop_call"] == 21 - MAX_PLACES


def test_one_passing_episode_of_each_test_is_recorded():
    found = derive_tests(
        [
            failing(nodeid="t.py::test[1-of-2]", iteration=1, iterations=2),
            episode(nodeid="t.py::test[2-of-2]", iteration=2, iterations=2),
            failing("bad", nodeid="t.py::test_bad"),
            episode("foreign", nodeid=None),
        ]
    )
    assert [(t.nodeid, t.has_passed, bool(t.mutants)) for t in found] == [
        ("foreign", True, True),
        ("t.py::test", True, True),
        ("t.py::test_bad", False, False),
    ]
    assert found[1].episode.iteration == 2


def test_the_plan_begins_with_the_recording():
    plan = build_plan(derive_tests([refund_talk(), failing("bad")]))
    (test,) = plan.tests
    assert test.plays[0].trajectory == refund_talk().trajectory


arguments = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
made_calls = st.builds(tool_call, st.sampled_from(["a", "b"]), arguments=arguments)
spoken = st.text(max_size=30) | st.sampled_from(["Shall I?", "It is 39.", "No. Why?"])
agent_turns = st.builds(
    turn,
    spoken,
    tool_calls=st.lists(made_calls, max_size=3),
    cost_usd=st.none() | st.floats(0, 10),
    latency_ms=st.none() | st.floats(0, 1e6),
)
exchanges = st.lists(st.lists(agent_turns, max_size=3), max_size=4)


@given(exchanges)
def test_every_mutant_differs_and_the_user_says_the_same(said):
    turns = [one for answers in said for one in ("go on", *answers)]
    first, again = (derive_tests([talk(*turns, evidence="none"), OTHER]) for _ in "ab")
    assert first == again
    recorded = first[0].episode.trajectory
    users = [t for t in recorded.turns if t.role == "user"]
    for mutant in first[0].mutants:
        assert mutant.trajectory != recorded
        assert [t for t in mutant.trajectory.turns if t.role == "user"] == users
        assert Mutation.model_validate_json(mutant.mutation.model_dump_json()) == mutant.mutation
