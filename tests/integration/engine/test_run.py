from __future__ import annotations

import asyncio

import pytest

from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.skills import Skill
from ci_agent_eval.errors import InputError
from tests.integration.engine.rig import Clock, agent, go, run, session
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.tables import each_row

BALANCE = {"tool_calls": [call("balance", account="checking")]}
HANG = {"hang": True}


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


def test_a_run_ends_with_the_answer_and_all_its_turns():
    result = run([BALANCE, "You have {tool}"], balance, prompt="my balance?")
    assert (result.stop_reason, result.success, result.error) == ("completed", True, None)
    assert result.final_response == 'You have {"account":"checking","usd":1500}'
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]
    assert result.turns[0].content == "my balance?"
    (found,) = result.all_tool_calls
    assert (found.id, found.name, found.arguments) == (
        "call_1_1",
        "balance",
        {"account": "checking"},
    )
    assert (found.result, found.error) == ({"account": "checking", "usd": 1500}, None)
    assert found.duration_ms == 0
    assert result.available_tools == ("balance",)
    assert (result.agent, result.model) == ("openai:gpt-5-mini", "openai:gpt-5-mini")


def test_calls_keep_their_own_results_and_times_though_a_model_repeats_their_ids():
    clock = Clock()

    def slower(seconds: int) -> str:
        clock.now += seconds
        return f"after {seconds}"

    def asks(seconds):
        return {"tool_calls": [call("slower", id="call_0", seconds=seconds)]}

    result = run([asks(1), asks(2), "done"], slower, clock=clock)
    assert [(c.result, c.duration_ms) for c in result.all_tool_calls] == [
        ("after 1", 1000),
        ("after 2", 2000),
    ]


def test_tokens_and_cost_are_counted_by_turn():
    usage = {"input": 1000, "output": 100, "cached": 400}
    result = run([{**BALANCE, "usage": usage}, {"text": "done", "usage": usage}], balance)
    assert (result.token_usage.input, result.token_usage.output) == (2000, 200)
    assert result.token_usage.cached == 800
    # gpt-5-mini: 600 fresh at $0.25, 400 cached at $0.025, 100 written at $2 a million.
    assert result.turns[1].cost_usd == pytest.approx(0.00036)
    assert result.cost_usd == pytest.approx(0.00072)


def test_what_an_answer_does_not_say_is_not_measured():
    result = run([{**BALANCE, "usage": None}, "done"], balance)
    assert result.turns[1].tokens is None
    assert (result.token_usage, result.cost_usd) == (None, None)


def test_a_model_without_a_price_is_unpriced_and_no_cost_limit_stops_it():
    options = {"model": "openai:house-model-3"}
    result = run(["hi"], agent_options=options, limits=RunLimits(cost_usd=0))
    assert (result.stop_reason, result.cost_usd) == ("completed", None)
    assert result.token_usage.total == 120


def test_an_allowed_tool_that_nobody_offers_is_said_before_the_model_is_asked():
    async def once(server, *functions, **options):
        async with session(*functions) as opened:
            return await aitest_run(agent(server, **options), "hello", session=opened)

    slip = {"allowed_tools": ["balance", "ballance"]}
    with ModelServer(["hi"]) as server:
        with pytest.raises(InputError, match="offers ballance; there are: balance"):
            go(once(server, balance, **slip))
        with pytest.raises(InputError, match="there are: no tools"):
            go(once(server, cli_servers=(), **slip))
        assert go(once(server, cli_servers=(), allowed_tools=[])).success
        assert len(server.requests) == 1


# Every way to end


def calls(count: int) -> list[dict]:
    return [BALANCE] * count


def test_turns_used_up():
    result = run(calls(9), balance, max_turns=2)
    assert (result.stop_reason, result.outcome) == ("max_turns", "failed")
    assert result.error == "it was not done after 2 turns"
    assert result.needs_turn
    assert [c.result is not None for c in result.all_tool_calls] == [True, True]


@each_row(
    ("limits", "stop", "said"),
    [
        (RunLimits(tokens=300), "token_limit", "it used 360 tokens, its limit is 300"),
        (RunLimits(cost_usd=0.0001), "cost_limit", "it cost $0.00013, its limit is $0.0001"),
    ],
)
def test_tokens_and_money_used_up(limits, stop, said):
    result = run(calls(9), balance, limits=limits)
    assert (result.stop_reason, result.outcome, result.error) == (stop, "failed", said)
    assert len(result.turns) == (4 if stop == "token_limit" else 3)


def test_the_agents_own_turns_hold_and_limits_only_tighten():
    assert len(run(calls(9), balance, agent_options={"max_turns": 3}).turns) == 4
    assert len(run(calls(9), balance, limits=RunLimits(max_turns=2)).turns) == 3
    assert len(run(calls(9), balance, limits=RunLimits(max_turns=5), max_turns=1).turns) == 2


def test_tool_calls_beyond_the_limit_do_not_run():
    ran = []

    def note(account: str) -> str:
        ran.append(account)
        return "ok"

    one = {"tool_calls": [call("note", account="a")]}
    two = {"tool_calls": [call("note", account="b"), call("note", account="c")]}
    result = run([one, two, "done"], note, limits=RunLimits(tool_calls=2))
    assert (result.stop_reason, result.outcome) == ("tool_call_limit", "failed")
    assert result.error == "it asked for 3 tool calls, its limit is 2"
    assert ran == ["a"]
    assert len(result.all_tool_calls) == 3


def test_a_tool_called_wrongly_too_often():
    wrong = {"tool_calls": [call("balance", accnt="x")]}
    result = run([wrong] * 5, balance, agent_options={"retries": 2})
    assert (result.stop_reason, result.outcome) == ("tool_call_limit", "failed")
    assert "'balance' exceeded max retries count of 2" in result.error
    assert len(result.all_tool_calls) == 3
    assert "Field required" in result.all_tool_calls[0].error


def test_a_tool_that_is_not_there():
    result = run([{"tool_calls": [call("transfer")]}, "sorry"], balance)
    assert result.stop_reason == "completed"
    assert "transfer" in result.all_tool_calls[0].error


def test_an_answer_cut_at_max_tokens():
    for text in ("", "You have 1,5"):
        result = run([{"text": text, "finish_reason": "length"}])
        assert (result.stop_reason, result.outcome) == ("truncated", "failed")
        assert result.final_response == text


def test_time_used_up_keeps_what_was_done():
    result = run([BALANCE, HANG], balance, timeout_s=3)
    assert (result.stop_reason, result.outcome) == ("timeout", "failed")
    assert result.error == "it was not done after 3 s; request 2 to the model was open"
    assert result.all_tool_calls[0].result["usd"] == 1500
    assert len(result.messages) == 3


def test_a_model_that_never_answered_shows_nothing_of_the_agent():
    result = run([HANG], timeout_ms=100)
    assert (result.stop_reason, result.outcome) == ("timeout", "error")
    assert [turn.role for turn in result.turns] == ["user"]


def test_a_tool_that_never_answers_is_stopped_by_the_time():
    async def forever() -> None:
        await asyncio.Event().wait()

    both = {"tool_calls": [call("balance", account="a"), call("forever")]}
    result = run([both, "done"], balance, forever, timeout_s=3)
    assert result.stop_reason == "timeout"
    assert result.error.endswith("it was at work on the model's answer 1")
    answered, stopped = result.all_tool_calls
    assert answered.result["usd"] == 1500
    assert stopped.error == "it was stopped before it answered"


@each_row(
    ("answer", "said"),
    [
        ({"refusal": "I will not."}, "the model refused: I will not."),
        ({"text": "Well,", "finish_reason": "content_filter"}, "the model refused: Well,"),
        ({"text": "", "finish_reason": "content_filter"}, "its answer was filtered"),
    ],
)
def test_a_refusal(answer, said):
    result = run([answer])
    assert (result.stop_reason, result.outcome, result.error) == ("refusal", "failed", said)
    assert len(result.turns) == 2


@each_row("error", [ServerError("server 'bank' died"), OSError("broken pipe")])
def test_a_tool_server_that_breaks(error):
    def breaks() -> None:
        raise error

    both = {"tool_calls": [call("breaks"), call("balance", account="a")]}
    result = run([both, "done"], balance, breaks)
    assert (result.stop_reason, result.outcome) == ("server_error", "error")
    assert str(error) in result.error
    broken = result.tool_calls_for("breaks")[0]
    assert str(error) in broken.error
    assert broken.result is None


def test_a_server_that_cannot_be_had():
    class Broken:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            return None

        def toolsets(self, servers, episode_id):
            raise ServerError("server 'bank' did not start: no such file")

    async def once(server):
        async with session(servers=Broken()) as opened:
            return await aitest_run(agent(server), "hello", session=opened)

    with ModelServer([]) as server:
        result = go(once(server))
    assert result.stop_reason == "server_error"
    assert result.error.endswith("server 'bank' did not start: no such file")
    assert [turn.content for turn in result.turns] == ["hello"]


@each_row(
    ("fault", "said"),
    [
        (500, "answered with status 500: "),
        ({"status": 401, "code": "invalid_api_key"}, "answered with status 401: "),
        ({"body": "{nope"}, "gave no answer: the body is no complete JSON: "),
        ({"body": "[]"}, "Invalid response"),
        (
            {
                "body": '{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'
            },
            "could not be read",
        ),
        ({"body": "<html>", "content_type": "text/html"}, "the body is no complete JSON: <html>"),
    ],
)
def test_a_models_api_that_fails(fault, said):
    result = run([BALANCE, fault], balance)
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert said in result.error
    assert result.all_tool_calls[0].result["usd"] == 1500


def test_a_model_that_says_nothing_at_all():
    result = run([Step(text="")] * 3)
    assert (result.stop_reason, result.outcome) == ("empty_answer", "failed")
    assert result.error.startswith("its answer is empty: no text, ")
    assert [turn.finish_reason for turn in result.trajectory.agent_turns] == ["stop", "stop"]


def test_a_conversation_that_no_longer_fits_the_model():
    too_long = {"status": 400, "code": "context_length_exceeded"}
    result = run([BALANCE, too_long], balance)
    assert (result.stop_reason, result.outcome) == ("context_window", "failed")
    assert len(result.all_tool_calls) == 1


def test_a_cancelled_run_is_told_to_its_observer_and_stays_cancelled():
    seen: list[AgentResult] = []

    async def once(server):
        async with session(balance) as opened:
            work = aitest_run(agent(server), "hello", session=opened, observer=seen.append)
            task = asyncio.create_task(work)
            await server.requests_arrived(2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with ModelServer([BALANCE, HANG]) as server:
        go(once(server))
    (result,) = seen
    assert (result.stop_reason, result.outcome) == ("cancelled", "error")
    assert result.all_tool_calls[0].result["usd"] == 1500


@each_row(
    ("options", "named"),
    [
        ({"timeout_s": 0}, "aitest_run.timeout_s"),
        ({"max_turns": 0}, "aitest_run.max_turns"),
        ({"prompt": None}, "aitest_run.prompt"),
    ],
)
def test_a_wrong_argument_is_named(options, named):
    with pytest.raises(InputError, match=named):
        run(["hi"], **options)


def test_a_skill_is_read_through_its_tool_whatever_tools_are_allowed(tmp_path):
    folder = tmp_path / "rates"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: rates\ndescription: Knows rates. Use for rates.\n---\nRead the rates.\n"
    )
    (folder / "references" / "rates.md").write_text("Savings: 2 %")
    asks = {"tool_calls": [call("read_skill_reference", name="references/rates.md")]}
    options = {"skill": Skill.from_path(folder), "allowed_tools": ["balance"]}
    result = run([asks, "{tool}"], balance, agent_options=options)
    assert "Savings: 2 %" in result.final_response
    assert result.available_tools == ("balance", "read_skill_reference")


def test_the_key_instructions_and_settings_of_a_provider_are_in_each_request():
    async def ask(server: ModelServer) -> AgentResult:
        provider = Provider(
            "deepseek:deepseek-chat",
            base_url=server.base_url,
            api_key_env="HOUSE_KEY",
            max_tokens=7,
            temperature=0.5,
            top_p=0.5,
            seed=7,
            reasoning_effort="low",
            headers={"X-Team": "desk"},
            extra_body={"user": "ci"},
        )
        async with session(environ={"HOUSE_KEY": "k-123"}) as opened:
            given = Agent(provider, system_prompt="Be brief.")
            return await aitest_run(given, "hello", session=opened)

    with ModelServer(["hi"]) as server:
        assert go(ask(server)).final_response == "hi"
        (asked,) = server.requests
    assert asked.headers["authorization"] == "Bearer k-123"
    assert asked.body["messages"][0] == {"role": "system", "content": "Be brief."}
    sent = {"top_p": 0.5, "seed": 7, "reasoning_effort": "low", "user": "ci", "temperature": 0.5}
    assert {name: asked.body.get(name) for name in sent} == sent
    assert asked.body.get("max_tokens", asked.body.get("max_completion_tokens")) == 7
    assert asked.headers["x-team"] == "desk"


def test_a_request_without_an_answer_in_time_is_a_model_error():
    result = run([HANG] * 3, agent_options={"timeout_s": 0.2})
    assert result.stop_reason == "model_error"
    assert result.error == "the model's API gave no answer: ReadTimeout"
