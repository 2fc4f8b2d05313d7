"""Turns, tool results and agents of recorded model calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.model_traffic.conversations import KnownPrompt
from ci_agent_eval.model_traffic.messages import ModelAnswer, RequestMessage, ToolResult
from ci_agent_eval.model_traffic.trajectory import MAX_TEXT_CHARACTERS, build_trajectory
from tests.traffic_calls import Traffic, answer, result, said, system, tool, user


def turns_of(traffic, **options):
    return [one.turn for one in build_trajectory(traffic.calls, **options).turns]


def texts_of(traffic, **options):
    return [(turn.role, turn.content) for turn in turns_of(traffic, **options)]


def agents_of(traffic, **options):
    return [
        (agent.id, agent.name, agent.relation)
        for agent in build_trajectory(traffic.calls, **options).agents
    ]


LOOKUP = tool("lookup", "c1", order=7)


def test_a_turn_has_models_times_settings_tokens_cost_and_typed_output():
    traffic = Traffic()
    traffic.ask(
        user("Rate it"),
        gives=answer('{"stars": 4}', model="gpt-5-mini-2026"),
        settings={"temperature": 0.2},
        output_schema={"type": "object"},
    )
    *_, turn = turns_of(traffic, compute_cost=lambda call: 0.25)
    assert (turn.requested_model, turn.response_model) == ("gpt-5-mini", "gpt-5-mini-2026")
    assert (turn.first_byte_ms, turn.latency_ms) == (1000, 2000)
    assert (turn.settings, turn.typed_output) == ({"temperature": 0.2}, {"stars": 4})
    assert (turn.tokens, turn.cost_usd) == (TokenUsage(input=10, output=5), 0.25)
    assert (turn.source, turn.error) == ("live", None)


def test_a_result_without_an_id_belongs_to_the_first_open_call_of_its_name():
    first, other, second = tool("add", a=1), tool("sub", a=2), tool("add", a=3)
    traffic = Traffic()
    traffic.ask(user("Sum"), gives=answer("", first, other, second))
    traffic.ask(
        user("Sum"),
        said("", first, other, second),
        RequestMessage(
            "tool",
            tool_results=(
                ToolResult(None, "add", 1),
                ToolResult(None, "add", 3),
                ToolResult(None, "sub", 2),
            ),
        ),
        gives=answer("6"),
    )
    assert [call.result for call in turns_of(traffic)[1].tool_calls] == [1, 2, 3]


def test_ids_that_a_model_restarts_belong_to_the_last_answer():
    traffic = Traffic()
    first = [user("Go"), said("", LOOKUP), result("one", "c1")]
    traffic.ask(user("Go"), gives=answer("", LOOKUP))
    traffic.ask(*first, gives=answer("", LOOKUP))
    traffic.ask(*first, said("", LOOKUP), result("two", "c1"), gives=answer("Done"))
    results = [call.result for turn in turns_of(traffic) for call in turn.tool_calls]
    assert results == ["one", "two"]


def test_an_error_result_is_an_error():
    traffic = Traffic()
    traffic.ask(user("Go"), gives=answer("", LOOKUP))
    traffic.ask(
        user("Go"),
        said("", LOOKUP),
        result("no order 7", "c1", is_error=True),
        gives=answer("Sorry"),
    )
    (call,) = turns_of(traffic)[1].tool_calls
    assert (call.error, call.result, call.result_unseen) == ("no order 7", None, False)


def test_results_that_a_framework_writes_as_text_are_not_seen_and_not_said_by_the_user():
    traffic = Traffic()
    traffic.ask(user("Go"), gives=answer("", LOOKUP))
    traffic.ask(
        user("Go"), said("Calling tools: lookup"), user("Observation: Rome"), gives=answer("Rome.")
    )
    assert texts_of(traffic) == [
        ("user", "Go"),
        ("assistant", ""),
        ("system", "Observation: Rome"),
        ("assistant", "Rome."),
    ]
    assert turns_of(traffic)[1].tool_calls[0].result_unseen
    assert agents_of(traffic) == []


def test_the_next_message_of_the_user_is_a_turn_and_earlier_ones_are_not_repeated():
    traffic = Traffic()
    traffic.ask(system("Be kind"), user("Hi"), gives=answer("Hello"))
    traffic.ask(system("Be kind"), user("Hi"), said("Hello"), user("Bye"), gives=answer("Bye!"))
    assert texts_of(traffic) == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Bye"),
        ("assistant", "Bye!"),
    ]
    assert agents_of(traffic) == []


def test_examples_in_the_first_request_are_no_part_of_the_episode():
    traffic = Traffic()
    traffic.ask(user("2+2"), said("4"), user("3+3"), gives=answer("6"))
    assert texts_of(traffic) == [("user", "3+3"), ("assistant", "6")]


def test_a_stream_that_breaks_off_and_is_repeated_is_one_turn():
    traffic = Traffic()
    traffic.ask(user("Hi"), gives=answer("", LOOKUP))
    again = (user("Hi"), said("", LOOKUP), result("Rome", "c1"))
    traffic.break_off(*again, gives=answer("Ro", tokens=None))
    traffic.ask(*again, gives=answer("Rome."))
    assert texts_of(traffic) == [("user", "Hi"), ("assistant", ""), ("assistant", "Rome.")]
    assert turns_of(traffic)[1].tool_calls[0].result == "Rome"


def test_a_call_that_is_open_at_the_end_is_kept():
    traffic = Traffic()
    call = traffic.start(user("Hi"))
    traffic.format.next_answer = answer("He", tokens=None)
    call.set_response(200, {})
    call.feed(b"part")
    assert [turn.content for turn in turns_of(traffic)] == ["Hi", "He"]


def test_a_conversation_stored_at_the_provider_continues_by_its_id():
    traffic = Traffic()
    traffic.ask(user("Hi"), gives=answer("", LOOKUP, id="resp_1"))
    traffic.ask(
        result("Rome", "c1"), gives=answer("Rome.", id="resp_2"), previous_response_id="resp_1"
    )
    traffic.ask(user("Bye"), gives=answer("Bye!", id="resp_3"), previous_response_id="resp_2")
    assert [content for _, content in texts_of(traffic)] == ["Hi", "", "Rome.", "Bye", "Bye!"]
    assert turns_of(traffic)[1].tool_calls[0].result == "Rome"
    assert agents_of(traffic) == []


def test_a_shortened_history_continues_its_conversation():
    search = tool("search", q="x")
    traffic = Traffic()
    traffic.ask(user("one"), gives=answer("", LOOKUP))
    traffic.ask(user("one"), said("", LOOKUP), result("Rome", "c1"), gives=answer("", search))
    traffic.ask(said("", search), result("found", name="search"), gives=answer("Done"))
    assert [call.result for turn in turns_of(traffic) for call in turn.tool_calls] == [
        "Rome",
        "found",
    ]
    assert agents_of(traffic) == []


def test_a_summary_in_place_of_the_history_continues_by_the_id_of_a_result():
    traffic = Traffic()
    traffic.ask(user("one"), gives=answer("", LOOKUP))
    traffic.ask(user("Summary: he asked"), result("Rome", "c1"), gives=answer("Rome."))
    assert turns_of(traffic)[1].tool_calls[0].result == "Rome"
    assert agents_of(traffic) == []


def test_an_agent_of_a_nested_agent_is_nested_twice():
    traffic = Traffic()
    traffic.ask(user("Help"), gives=answer("", tool("plan", "c1", task="plan it")))
    traffic.ask(
        system("Planner"), user("plan it"), gives=answer("", tool("search", "s1", task="find it"))
    )
    traffic.ask(system("Searcher"), user("find it"), gives=answer("found"))
    assert [agent for agent, *_ in agents_of(traffic)] == ["1", "1.1", "1.1.1"]


def test_a_conversation_that_continues_with_other_instructions_after_a_transfer_is_a_handoff():
    move = tool("transfer_to_refunds", "c1")
    back = tool("transfer_to_triage", "c2")
    traffic = Traffic()
    first = (user("Money back"), said("", move), result("ok", "c1"))
    traffic.ask(system("Triage"), user("Money back"), gives=answer("", move))
    traffic.ask(system("Refunds"), *first, gives=answer("", back))
    traffic.ask(system("Triage"), *first, said("", back), result("ok", "c2"), gives=answer("Done"))
    found = build_trajectory(traffic.calls)
    assert agents_of(traffic) == [("1", None, None), ("1.1", "refunds", "handoff")]
    assert [one.turn.agent for one in found.turns] == ["1", "1", "1.1", "1"]


def test_a_handoff_that_rewrites_the_history_is_one_by_the_name_of_its_target():
    move = tool("transfer_to_agent", agent_name="billing")
    traffic = Traffic()
    traffic.ask(system("Root"), user("Bill?"), gives=answer("", move))
    traffic.ask(system("Billing"), user("For context: Bill?"), gives=answer("It is $5"))
    assert agents_of(traffic) == [("1", None, None), ("1.1", "billing", "handoff")]
    assert texts_of(traffic) == [("user", "Bill?"), ("assistant", ""), ("assistant", "It is $5")]


def test_other_instructions_without_a_transfer_are_the_same_agent():
    traffic = Traffic()
    traffic.ask(system("It is 10:00"), user("Hi"), gives=answer("Hello"))
    traffic.ask(system("It is 10:01"), user("Hi"), said("Hello"), user("Bye"), gives=answer("Bye!"))
    assert agents_of(traffic) == []


def test_an_agent_that_is_asked_twice_without_history_is_one_agent():
    traffic = Traffic()
    traffic.ask(system("Poet"), user("Go"), gives=answer("A poem"))
    traffic.ask(system("Poet"), user("Again"), gives=answer("Another"))
    assert agents_of(traffic) == []
    assert len(turns_of(traffic)) == 4


def test_an_agent_that_is_asked_again_after_a_typed_output_is_not_nested_in_itself():
    traffic = Traffic()
    for prompt in ("My balance?", "I lost my card!"):
        output = answer("", tool("final_result", "c1", advice="Done"))
        traffic.ask(system("You are a bank"), user(prompt), gives=output, tools=["final_result"])
    assert agents_of(traffic) == []
    assert [text for role, text in texts_of(traffic) if role == "user"] == [
        "My balance?",
        "I lost my card!",
    ]


def test_an_open_tool_call_of_an_earlier_prompt_nests_nothing():
    first, second = KnownPrompt("one"), KnownPrompt("two")
    traffic = Traffic()
    traffic.ask(user("one"), gives=answer("", LOOKUP))
    traffic.ask(user("two"), gives=answer("Done"))
    prompts = {1: first, 2: second}
    assert agents_of(traffic, find_prompt=lambda call: prompts[call.number]) == []


def test_a_known_prompt_is_left_out_and_other_texts_are_the_frameworks():
    prompt = KnownPrompt("Hi")
    traffic = Traffic()
    traffic.ask(user("Current task: Hi"), gives=answer("Hello"))
    traffic.ask(user("Current task: Hi"), said("Hello"), user("Use JSON"), gives=answer("{}"))
    assert texts_of(traffic, find_prompt=lambda _: prompt) == [
        ("assistant", "Hello"),
        ("system", "Use JSON"),
        ("assistant", "{}"),
    ]


def test_long_and_invalid_texts_are_limited():
    traffic = Traffic()
    call = tool("t" * 500, "c1", text="x" * (MAX_TEXT_CHARACTERS + 1))
    traffic.ask(
        user("\ud800" + "y" * MAX_TEXT_CHARACTERS),
        gives=answer("", call),
        settings={"stop": "z" * 9999},
    )
    asked, turn = turns_of(traffic)
    assert asked.content.endswith("… (1 more characters)")
    asked.content.encode()
    assert len(turn.tool_calls[0].name) < 300
    assert isinstance(turn.tool_calls[0].arguments, str)
    assert len(turn.settings["stop"]) < 600


AGENTS = st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=4)


@given(agents=AGENTS, data=st.data())
def test_conversations_in_any_interleaving_are_told_apart_with_their_results(agents, data):
    """Each boolean is an answer: with a tool call, or with a text and the user's next message."""
    traffic = Traffic()
    histories = [[system(f"agent {n}"), user(f"begin {n}")] for n in range(len(agents))]
    left = {n: list(steps) for n, steps in enumerate(agents)}
    while left:
        n = data.draw(st.sampled_from(sorted(left)))
        history, has_tool = histories[n], left[n].pop(0)
        number = len(traffic.calls)
        call = tool("work", "same id", number=number)
        given_answer = answer("", call) if has_tool else answer(f"said {number}")
        traffic.ask(*history, gives=given_answer)
        history.append(said(given_answer.text, *given_answer.tool_calls))
        history.append(
            result(f"result {number}", "same id") if has_tool else user(f"more {number}")
        )
        if not left[n]:
            del left[n]
            traffic.ask(*history, gives=answer(f"end {n}"))
    # Without a known prompt, a conversation begun during another one's tool call is nested.
    found = build_trajectory(traffic.calls)
    ids = {one.turn.content: one.turn.agent for one in found.turns}
    for n, steps in enumerate(agents):
        own = [one.turn for one in found.turns if one.turn.agent == ids[f"begin {n}"]]
        assert [turn.content for turn in own if turn.content.startswith("end")] == [f"end {n}"]
        assert sum(turn.role == "assistant" for turn in own) == len(steps) + 1
    for one in found.turns:
        for call in one.turn.tool_calls:
            assert call.result == f"result {call.arguments['number']}"
    assert len({ids[f"begin {n}"] for n in range(len(agents))}) == len(agents)


def test_an_answer_without_any_content_is_an_empty_turn():
    traffic = Traffic()
    traffic.ask(user("Hi"), gives=ModelAnswer(finish_reason="stop"))
    assert texts_of(traffic) == [("user", "Hi"), ("assistant", "")]
