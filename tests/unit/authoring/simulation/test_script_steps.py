"""A conversation as a script of steps, and the judge that can end it."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from ci_agent_eval import (
    AgentStep,
    CheckStep,
    ConversationJudge,
    JudgeStep,
    MessageFile,
    MessageStep,
    ProceedStep,
    SimulatedUser,
    ToolResultStep,
    UserStep,
    run_simulation,
)
from ci_agent_eval.authoring.simulation.user_model import build_instructions, build_prompt
from ci_agent_eval.checks import ForbiddenTools, RequiredText, RequiredTools
from ci_agent_eval.contract.trajectory import MAX_TOTAL_ATTACHED_BYTES, Attachment
from ci_agent_eval.errors import InputError


def desk(message, *, thread_id):
    if not message:
        return "Welcome! How can I help?"
    call = {"name": "refund", "arguments": {"order": 1001}, "result": "ok"}
    return {"text": "Refunded.", "tool_calls": [call]} if "1001" in message else "Which order?"


def user(*script):
    return SimulatedUser("a customer", script=list(script))


def shown(recorder):
    return [(turn.role, turn.content) for turn in recorder.turns]


def found(recorder):
    return [(a.name.partition(":")[0], a.passed) for a in recorder.finish().assertions]


class TestSteps:
    def test_the_agent_speaks_first(self, recorder):
        steps = [AgentStep(), UserStep("1001"), AgentStep()]
        result = run_simulation(desk, steps=steps)
        assert shown(recorder) == [
            ("assistant", "Welcome! How can I help?"),
            ("user", "1001"),
            ("assistant", "Refunded."),
        ]
        assert (result.stop_reason, result.turns) == ("script_ended", 2)
        assert result.exchanges[0].message is None
        welcome = {"role": "assistant", "content": "Welcome! How can I help?"}
        assert result.conversation_history[0] == welcome

    def test_the_simulated_user_writes_the_messages_without_a_text(self, recorder):
        steps = [UserStep(), AgentStep(), ProceedStep(1), UserStep("1001"), AgentStep()]
        result = run_simulation(desk, user("Hello", {"which": "I do not know"}), steps=steps)
        said = [exchange.message for exchange in result.exchanges]
        assert said == ["Hello", "I do not know", "1001"]

    def test_proceeding_is_limited_by_max_turns_and_the_script_is_not(self):
        steps = [*[UserStep("Hi"), AgentStep()] * 3, ProceedStep()]
        result = run_simulation(desk, user("a", "b"), max_turns=4, steps=steps)
        assert (result.turns, result.stop_reason) == (4, "max_turns")

    def test_what_is_injected_reaches_the_app_and_is_no_turn_of_the_agent(self, recorder):
        seen = []

        def app(message, *, messages):
            seen.append((message, messages))
            return "It is shipped."

        steps = [
            MessageStep("assistant", "Welcome!"),
            UserStep("Where is it?"),
            ToolResultStep("find_order", {"status": "shipped"}, {"order": 7}),
            AgentStep(),
        ]
        result = run_simulation(app, steps=steps)
        ((message, messages),) = seen
        assert message == "Where is it?"
        assert [each["role"] for each in messages] == ["assistant", "user", "assistant", "tool"]
        assert messages[2]["tool_calls"][0]["function"] == {
            "name": "find_order",
            "arguments": '{"order": 7}',
        }
        assert messages[3]["content"] == '{"status": "shipped"}'
        assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]
        told = {"role": "assistant", "content": "It is shipped."}
        assert result.conversation_history == [*messages, told]
        episode = recorder.finish()
        injected = [turn.content for turn in episode.trajectory.turns if turn.injected]
        assert injected == [
            "injected assistant message: Welcome!",
            'injected result of find_order({"order": 7}): {"status": "shipped"}',
        ]
        assert [turn.content for turn in episode.trajectory.agent_turns] == ["It is shipped."]
        assert not list(episode.trajectory.tool_calls())

    def test_an_app_without_messages_refuses_injection(self):
        steps = [MessageStep("system", "Be brief."), UserStep("Hi"), AgentStep()]
        with pytest.raises(InputError, match="let it take a parameter `messages`"):
            run_simulation(desk, steps=steps)

    def test_checks_see_the_conversation_or_the_last_turn(self, recorder):
        steps = [
            UserStep("1001"),
            AgentStep(),
            CheckStep(RequiredTools(["refund"]), of="turn"),
            UserStep("Thanks"),
            AgentStep(),
            CheckStep(RequiredTools(["refund"])),
            CheckStep(RequiredTools(["refund"]), of="turn"),
            CheckStep(lambda history: history[-1]["content"] == "Which order?"),
        ]
        run_simulation(desk, steps=steps)
        assert found(recorder) == [
            ("turn 1", True),
            ("calls refund", True),
            ("turn 2", False),
            ("<lambda>", True),
        ]

    @pytest.mark.parametrize("judging", [[], [JudgeStep()]], ids=["implicit", "step"])
    def test_checks_of_the_turn_that_ended_it_are_made(self, recorder, judging):
        steps = [
            UserStep("Hi"),
            AgentStep(),
            *judging,
            CheckStep(RequiredText("Which"), of="turn"),
            CheckStep(lambda history: history[-1]["content"] == "Which order?"),
            UserStep("1001"),
            AgentStep(),
            CheckStep(RequiredText("Refunded"), of="turn"),
        ]
        judge = ConversationJudge(success=RequiredText("order"))
        result = run_simulation(desk, steps=steps, judge=judge)
        assert (result.stop_reason, result.turns) == ("judge_verdict", 1)
        *made, last = recorder.finish().assertions
        assert [(each.name, each.passed) for each in made[-2:]] == [
            ("turn 1: says 'Which'", True),
            ("<lambda>", True),
        ]
        assert last.reason == "it ended (judge_verdict) before 1 checks of a turn"

    def test_an_agent_that_stopped_has_failed_without_them(self, recorder):
        def app(message, *, thread_id):
            return {"text": "", "stop_reason": "max_turns"}

        steps = [UserStep("Hi"), AgentStep(), CheckStep(RequiredText("x"), of="turn")]
        assert run_simulation(app, steps=steps).stop_reason == "agent_stopped"
        assert len(recorder.finish().failed_assertions) == 1

    def test_a_function_s_own_assert_is_the_test_s(self):
        def is_refunded(history):
            assert "Refunded" in history[-1]["content"]

        with pytest.raises(AssertionError, match="Refunded"):
            run_simulation(desk, steps=[UserStep("Hi"), AgentStep(), CheckStep(is_refunded)])
        with pytest.raises(AssertionError, match="lambda"):
            run_simulation(desk, steps=[AgentStep(), CheckStep(lambda _: False)])
        with pytest.raises(InputError, match="the function returned a NoneType, not True or"):
            run_simulation(desk, steps=[AgentStep(), CheckStep(lambda h: h[0].get("text"))])

    @pytest.mark.parametrize(
        ("steps", "problem"),
        [
            ([], "at least one step"),
            (["hi"], r"steps\[0\]: must be a step"),
            ([UserStep("a")], "has no answer"),
            ([UserStep("a"), UserStep("b"), AgentStep()], r"steps\[1\]: the user's message"),
            ([ProceedStep(), AgentStep()], r"steps\[0\]: goes on until the end"),
            ([JudgeStep()], "there is no judge"),
            ([CheckStep(RequiredText("a"), of="turn")], r"steps\[0\]: there is no turn before it"),
        ],
    )
    def test_a_script_that_cannot_run_is_refused(self, steps, problem):
        with pytest.raises(InputError, match=problem):
            run_simulation(desk, steps=steps)

    def test_a_script_with_the_user_s_own_words_needs_a_user(self):
        with pytest.raises(InputError, match="is not a user"):
            run_simulation(desk, steps=[ProceedStep(2)])


class TestJudge:
    def test_what_must_hold_ends_it_with_a_failure(self, recorder):
        judge = ConversationJudge([RequiredText("Bye")], must_hold=[ForbiddenTools(["refund"])])
        result = run_simulation(desk, user("Hi", "1001", "never said"), judge=judge)
        assert (result.stop_reason, result.turns) == ("judge_verdict", 2)
        assert not result.verdict.passed
        assert "refund" in result.verdict.reason
        assert found(recorder) == [("judge", False)]

    def test_without_success_at_the_end_it_fails(self, recorder):
        judge = ConversationJudge(success=RequiredTools(["refund"]))
        result = run_simulation(desk, user("Hi", "Hm"), judge=judge)
        assert (result.stop_reason, result.verdict.passed) == ("script_ended", False)
        assert found(recorder) == [("judge", False)]

    def test_it_asks_models_as_an_awaitable(self, recorder):
        class Later:
            async def assertions(self, episode):
                return RequiredTools(["refund"]).assertions(episode)

        result = run_simulation(desk, user("1001", "never"), judge=ConversationJudge(Later()))
        assert result.turns == 1

    @pytest.mark.parametrize("given", [{}, {"success": "polite"}, {"must_hold": [3]}])
    def test_it_needs_checks(self, given):
        with pytest.raises(InputError, match="ConversationJudge"):
            ConversationJudge(**given)

    def test_it_needs_an_episode(self):
        judge = ConversationJudge(success=RequiredText("x"))
        with pytest.raises(InputError, match="a judge looks at an episode"):
            run_simulation(desk, user("Hi"), judge=judge)


class TestPrivateFacts:
    FACTS = MappingProxyType({"order number": "1001", "city": "Oslo"})

    def test_given_messages_use_them(self):
        customer = SimulatedUser(
            "a customer",
            script=["I am in {city} {today}", {"which": "It is {order number}."}],
            private_facts=self.FACTS,
        )
        result = run_simulation(desk, customer)
        said = [exchange.message for exchange in result.exchanges]
        assert said == ["I am in Oslo {today}", "It is 1001."]

    def test_a_fact_is_never_read_as_another_one(self):
        customer = SimulatedUser(
            "a customer", script=["{city}"], private_facts={"city": "{order}", "order": "7"}
        )
        assert run_simulation(desk, customer).exchanges[0].message == "{order}"

    def test_the_model_of_the_user_is_told_when_to_tell_them(self):
        told = SimulatedUser("in a hurry", "openai:gpt-5-mini", private_facts=self.FACTS)
        without = SimulatedUser("in a hurry", "openai:gpt-5-mini")
        assert "only if the assistant asks for it" in build_instructions(told)
        assert "Facts" not in build_instructions(without)

    def test_the_user_s_model_does_not_see_injected_tool_calls(self):
        history = [
            {"role": "system", "content": "secret rules"},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "tool_call_id": "1", "content": "secret result"},
            {"role": "assistant", "content": "Hello"},
        ]
        assert '{"you": "Hi"}\n{"assistant": "Hello"}\n' in build_prompt(history)
        assert "secret" not in build_prompt(history)

    @pytest.mark.parametrize("facts", ["Oslo", {"city": ""}, {"city": 3}, {"": "x"}])
    def test_facts_are_texts_with_names(self, facts):
        with pytest.raises(InputError, match=r"SimulatedUser\.private_facts"):
            SimulatedUser("a customer", script=["a"], private_facts=facts)


class TestFiles:
    PHOTO = MessageFile(b"\x89PNG", "image/png", "cup.png")

    def test_files_reach_the_app_and_their_hash_is_recorded(self, recorder):
        got = []

        def app(message, *, files):
            got.append(files)
            return "A cup."

        steps = [UserStep("What is it?", files=[self.PHOTO]), AgentStep(), UserStep("Ok")]
        run_simulation(app, steps=[*steps, AgentStep()])
        assert got == [(self.PHOTO,), ()]
        first, _, later, _ = recorder.turns
        assert first.attachments == (
            Attachment(
                media_type="image/png",
                sha256="0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543",
                size_bytes=4,
            ),
        )
        assert later.attachments == ()
        assert "PNG" not in recorder.finish().model_dump_json()

    def test_the_files_of_a_script_have_a_limit_together(self, recorder):
        half = MessageFile(bytes(MAX_TOTAL_ATTACHED_BYTES // 2), "image/png")
        got = []

        def app(message, *, files):
            got.extend(files)
            return "Ok"

        steps = [UserStep("One", [half]), AgentStep(), UserStep("Two", [half]), AgentStep()]
        run_simulation(app, steps=steps)
        assert len(got) == 2
        more = [UserStep("Three", [self.PHOTO]), AgentStep()]
        with pytest.raises(InputError) as caught:
            run_simulation(app, steps=[*steps, *more])
        assert str(caught.value) == (
            "run_simulation: steps[4]: the files of the conversation have 20,971,524 bytes, of at "
            "most 20,971,520; send fewer or smaller ones"
        )
        assert len(got) == 2

    def test_an_app_without_files_refuses_them(self):
        with pytest.raises(InputError, match="let it take a parameter `files`"):
            run_simulation(desk, steps=[UserStep("Look", files=[self.PHOTO]), AgentStep()])

    @pytest.mark.parametrize(
        ("build", "problem"),
        [
            (lambda: MessageFile(b"", "image/png"), r"MessageFile\.data"),
            (lambda: MessageFile(b"x", "png"), r"MessageFile\.media_type"),
            (lambda: UserStep("a", files=["cup.png"]), r"UserStep\.files"),
            (lambda: UserStep(files=[MessageFile(b"x", "image/png")]), "need a text"),
        ],
    )
    def test_wrong_files_are_refused(self, build, problem):
        with pytest.raises(InputError, match=problem):
            build()
