"""A simulated user talks to an app: the order of things, what ends it, what is kept."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from ci_agent_eval import SimulatedUser, run_simulation
from ci_agent_eval.errors import InputError


def echo(message, *, thread_id):
    return f"you said {message}"


def user(*responses, **options):
    return SimulatedUser("a customer", fixed_responses=responses or ["hi"], **options)


def scripted(*entries, **options):
    return SimulatedUser("a customer", script=list(entries), **options)


def said(result):
    return [m["content"] for m in result.conversation_history if m["role"] == "user"]


class TestAsOpik:
    """Opik's callers need to change nothing."""

    def test_its_arguments_have_its_positions(self):
        names = list(inspect.signature(run_simulation).parameters)
        theirs = ["app", "user_simulator", "initial_message", "max_turns", "thread_id"]
        assert names[:7] == [*theirs, "project_name", "tags"]
        names = list(inspect.signature(SimulatedUser).parameters)
        assert names[:3] == ["persona", "model", "fixed_responses"]

    def test_the_result_is_a_mapping_of_its_keys(self):
        result = run_simulation(echo, user("a", "b"), "hello", 2, "t-1", "desk", ["smoke"])
        assert result["thread_id"] == result.thread_id == "t-1"
        assert result["project_name"] == "desk"
        assert dict(result)["tags"] == ("smoke",)
        assert result["conversation_history"] == [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "you said hello"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "you said a"},
        ]
        with pytest.raises(KeyError):
            result["nothing"]

    def test_fixed_responses_go_round_and_a_turn_is_an_exchange(self):
        result = run_simulation(echo, user("a", "b"))
        assert said(result) == ["a", "b", "a", "b", "a"]
        assert (result.turns, result.stop_reason) == (5, "max_turns")

    def test_the_app_gets_the_thread_and_the_further_arguments(self):
        got = []

        def app(message, *, thread_id, **kwargs):
            got.append((message, thread_id, kwargs))
            return {"role": "assistant", "content": "ok"}

        run_simulation(app, user("a"), max_turns=1, thread_id="t", tier="gold")
        assert got == [("a", "t", {"tier": "gold"})]

    def test_a_class_made_of_ours_speaks_for_itself(self):
        class Shouting(SimulatedUser):
            def generate_response(self, conversation_history):
                return super().generate_response(conversation_history).upper()

        someone = Shouting("loud", fixed_responses=["a", "b [done]"], stop_token="[DONE]")
        result = run_simulation(echo, someone)
        assert said(result) == ["A", "B"]
        assert result.stop_reason == "stop_token"


class TestScript:
    def test_a_script_is_said_once(self):
        result = run_simulation(echo, scripted("a", "b"))
        assert said(result) == ["a", "b"]
        assert result.stop_reason == "script_ended"
        assert result.last_reply == "you said b"

    def test_functions_and_rules_answer_the_last_reply(self):
        result = run_simulation(
            echo, scripted("a", str.upper, {"nothing": "x", r"SAID \w+": "by rule", ".*": "y"})
        )
        assert said(result) == ["a", "YOU SAID A", "by rule"]

    def test_a_reply_that_no_rule_answers_ends_it_and_says_so(self):
        result = run_simulation(echo, scripted("a", {"order": "1001", "name": "Ada"}))
        assert result.stop_reason == "off_script"
        assert result.detail == "entry 2 of the script answers 'order', 'name' only"
        assert result.turns == 1

    @pytest.mark.parametrize(
        ("entries", "problem"),
        [
            (
                [1],
                "SimulatedUser.script[0]: must be a text, a function of the last reply, or rules",
            ),
            (["a", {}], "SimulatedUser.script[1]: must be a text, a function"),
            ([{"(": "x"}], "SimulatedUser.script[0]: '(' is not a regular expression"),
            ([{"a": 1}], "SimulatedUser.script[0]: a rule is a pattern and a message"),
        ],
    )
    def test_a_script_that_cannot_be_said_is_refused(self, entries, problem):
        with pytest.raises(InputError) as refused:
            scripted(*entries)
        assert str(refused.value).startswith(problem)


class TestEnds:
    """Each end has its reason, and the last reply is there."""

    def test_the_goal_goes_before_the_other_ends(self):
        result = run_simulation(
            echo,
            scripted("a", "b [DONE]"),
            max_turns=2,
            goal=lambda history: "b" in history[-1]["content"],
            stop_when=lambda history: len(history) == 4,
        )
        assert (result.stop_reason, result.turns) == ("goal_reached", 2)

    def test_what_is_said_before_the_token_is_delivered(self):
        result = run_simulation(echo, scripted("a", "yes, please. [DONE] and more"))
        assert said(result) == ["a", "yes, please."]
        assert result.last_reply == "you said yes, please."
        assert result.stop_reason == "stop_token"

    def test_another_token_or_none(self):
        assert run_simulation(echo, user("bye", stop_token="bye")).turns == 0
        assert run_simulation(echo, user("[DONE]", stop_token=None)).turns == 5

    def test_the_user_is_not_asked_once_the_turns_are_used_up(self):
        asked = []

        def model(persona, history):
            asked.append(len(history))
            return "more"

        run_simulation(echo, SimulatedUser("curious", model), max_turns=2)
        assert asked == [0, 2]


class TestApps:
    def test_what_it_raises_is_raised(self):
        def app(message):
            raise ConnectionError("no database")

        async def waiting(message):
            await asyncio.sleep(0)
            app(message)

        for broken in (app, waiting):
            with pytest.raises(ConnectionError, match="no database") as raised:
                run_simulation(broken, user("a"))
            assert raised.value.__notes__ == ["in turn 1 of the simulation"]

    def test_what_was_asked_of_a_turn_is_said_to_be_of_that_turn(self):
        def broken(history):
            raise KeyError(len(history) // 2)

        for name in ("stop_when", "goal"):
            with pytest.raises(KeyError) as raised:
                run_simulation(echo, user("a"), **{name: broken})
            assert raised.value.args == (1,)
            assert raised.value.__notes__ == ["in turn 1 of the simulation"]

    def test_what_is_no_app_or_user_is_refused(self):
        with pytest.raises(InputError, match="a int is not an app; give a function"):
            run_simulation(3, user("a"))
        with pytest.raises(InputError, match="a str is not a user; give a SimulatedUser"):
            run_simulation(echo, "user")


class TestAwaiting:
    def test_two_may_run_at_once(self):
        async def app(message, *, thread_id):
            await asyncio.sleep(0)
            return thread_id

        async def both():
            someone = user("a", "b")
            runs = (run_simulation(app, someone, thread_id=t, max_turns=2) for t in "xy")
            return await asyncio.gather(*runs)

        first, second = asyncio.run(both())
        assert (first.last_reply, second.last_reply) == ("x", "y")
        assert said(first) == said(second) == ["a", "b"]

    def test_the_metadata_tell_of_it_and_what_is_the_test_s_own_is_left_alone(self, recorder):
        run_simulation(echo, user(), max_turns=1, tags=["smoke"])
        (told,) = recorder.metadata["simulations"]
        assert told.pop("thread_id") == recorder.snapshot().thread_id
        assert told == {"stop_reason": "max_turns", "turns": 1, "tags": ["smoke"]}
        recorder.metadata["simulations"] = "mine"
        run_simulation(echo, user(), max_turns=1)
        assert recorder.metadata["simulations"] == "mine"


class TestModels:
    def test_it_is_shown_the_last_messages_only(self):
        seen = []

        def model(persona, history):
            seen.append([m["content"] for m in history])
            return "more"

        someone = SimulatedUser("Ada", model, max_history_messages=1)
        run_simulation(echo, someone, max_turns=3)
        assert seen == [[], ["you said more"], ["you said more"]]

    def test_a_model_by_name_needs_an_episode(self):
        with pytest.raises(InputError, match=r"SimulatedUser.model needs a running episode"):
            run_simulation(echo, SimulatedUser("Ada", "openai:gpt-5-mini"))

    def test_an_answer_that_is_no_text_is_refused(self):
        with pytest.raises(InputError, match="the simulated user said a int"):
            run_simulation(echo, SimulatedUser("Ada", lambda persona, history: 3))

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({}, "it has nothing to say; give fixed_responses, a script or a model"),
            ({"fixed_responses": "hi"}, "SimulatedUser.fixed_responses: must be a list"),
            ({"fixed_responses": [3]}, "SimulatedUser.fixed_responses[0]: must be a text"),
            ({"fixed_responses": ["a"], "script": ["b"]}, "give fixed_responses or a script"),
            ({"script": []}, None),
            ({"fixed_responses": ["a"], "stop_token": ""}, "SimulatedUser.stop_token: must be"),
            ({"fixed_responses": ["a"], "max_history_messages": 0}, "got 0"),
            ({"fixed_responses": ["a"], "goal": print}, "SimulatedUser.goal: must be a text"),
        ],
    )
    def test_a_user_that_cannot_speak_is_refused(self, options, problem):
        if problem is None:
            assert run_simulation(echo, SimulatedUser("Ada", **options)).turns == 0
            return
        with pytest.raises(InputError) as refused:
            SimulatedUser("Ada", **options)
        assert problem in str(refused.value)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"goal": "a refund"}, "goal must be a function of the conversation, got 'a refund'; "),
            ({"stop_when": "bye"}, "stop_when must be a function of the conversation, got 'bye'"),
            ({"tags": "smoke"}, "tags must be a list of texts, got 'smoke'"),
            ({"tags": 3}, "tags must be a list of texts, got 3"),
        ],
    )
    def test_arguments_of_another_type_are_refused(self, options, problem):
        with pytest.raises(InputError, match=f"run_simulation: {problem}"):
            run_simulation(echo, user("a"), **options)

    @pytest.mark.parametrize("turns", [0, -1, True, 2.5, None])
    def test_turns_are_a_whole_number(self, turns):
        with pytest.raises(InputError, match="max_turns: must be a whole number"):
            run_simulation(echo, user(), max_turns=turns)
