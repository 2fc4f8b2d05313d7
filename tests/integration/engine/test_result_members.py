"""The members of a result: what was called, by whom it was offered, and what it returned."""

from __future__ import annotations

import os
import sys
import time

import pydantic_ai
import pytest
from pydantic_ai.messages import BinaryContent, ImageUrl

from ci_agent_eval.contract.trajectory import MAX_TOTAL_ATTACHED_BYTES
from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider
from ci_agent_eval.engine.result import AgentResult, ImageContent, SkillInfo
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.engine.skills import Skill
from ci_agent_eval.errors import InputError
from tests.integration.engine.rig import go, model_of, run, run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.servers.gallery import PIXEL
from tests.servers.rig import GALLERY, a_bank
from tests.tables import each_row

IMAGE = ImageContent(PIXEL, "image/png")
SHOW = [{"tool_calls": [call("show_picture", title="Dawn")]}, "Here it is."]


def run_servers(script, *mcp: MCPServer, **options) -> AgentResult:
    """Run an agent with real tool servers."""

    async def ask(server: ModelServer) -> AgentResult:
        agent = Agent(
            Provider("openai:gpt-5-mini", base_url=server.base_url), mcp_servers=mcp, **options
        )
        async with EngineSession(environ=os.environ, clock=time.perf_counter) as session:
            return await aitest_run(agent, "hello", session=session)

    with ModelServer(script) as server:
        return go(ask(server))


def transfer(source: str, target: str, amount: float = 1) -> str:
    """Move money."""
    return f"{amount} from {source} to {target}"


def test_calls_are_found_by_name_and_by_some_of_their_arguments():
    both = {
        "text": "One moment.",
        "tool_calls": [
            call("transfer", source="a", target="b", amount=5),
            call("transfer", source="b", target="c"),
        ],
    }
    result = run([both, "done"], transfer)
    assert result.tool_names_called == {"transfer"}
    assert result.tool_was_called_with("transfer")
    assert result.tool_was_called_with("transfer", source="a", amount=5.0)
    assert result.tool_was_called_with("transfer", target="c")
    assert not result.tool_was_called_with("transfer", source="a", target="c")
    assert not result.tool_was_called_with("transfer", amount=True)
    assert not result.tool_was_called_with("balance")
    assert result.all_responses == ("One moment.", "done")
    assert result.final_response == "done"


def test_a_tool_belongs_to_the_server_that_offers_it_and_its_images_are_kept_beside_their_notes():
    gallery = MCPServer([sys.executable, GALLERY], name="gallery")
    git = CLIServer(name="repository", command="git", tool_prefix="git")
    result = run_servers(SHOW, a_bank(), gallery, cli_servers=[git])
    assert result.tool_was_called_from_server("gallery", "show_picture")
    assert not result.tool_was_called_from_server("bank", "show_picture")
    assert not result.tool_was_called_from_server("bank", "get_balance")
    assert result.tools_by_server["repository"] == ("git_execute",)
    assert result.tool_images_for("show_picture") == (IMAGE,)
    assert result.tool_images_for("other") == ()
    (made,) = result.all_tool_calls
    assert made.result == ["This is Dawn.", f"<image/png, {len(PIXEL)} bytes>"]
    with pytest.raises(InputError, match=r"no tool server 'galery'; it has: bank, gallery, repos"):
        result.tool_was_called_from_server("galery", "show_picture")


def test_the_servers_of_other_agents_are_not_known():
    result = run_agent(lambda message: "hi")
    with pytest.raises(InputError, match=r"servers of agent .<lambda>. are not known"):
        result.tool_was_called_from_server("bank", "get_balance")


def test_the_images_of_a_pydantic_ai_agent_are_kept_too():
    def show_picture(title: str) -> pydantic_ai.ToolReturn:
        return pydantic_ai.ToolReturn(
            f"This is {title}.", content=["See:", BinaryContent(PIXEL, media_type="image/png")]
        )

    with ModelServer(SHOW) as server:
        result = run_agent(pydantic_ai.Agent(model_of(server), tools=[show_picture]))
    assert result.tool_images_for("show_picture") == (IMAGE,)


def test_the_prompt_and_the_skill_are_those_of_the_declaration(tmp_path):
    folder = tmp_path / "advisor"
    (folder / "references").mkdir(parents=True)
    (folder / "references/rates.md").write_text("2 %")
    (folder / "SKILL.md").write_text(
        "---\nname: advisor\ndescription: Gives advice.\n---\nBe careful.\n"
    )
    skill = Skill.from_path(folder)
    result = run(["ok"], agent_options={"skill": skill, "system_prompt": "You are a bank."})
    assert result.effective_system_prompt == f"{skill.content}\n\nYou are a bank."
    assert result.skill_info == SkillInfo(
        "advisor", "Gives advice.", skill.content, ("references/rates.md",)
    )
    plain = run(["ok"])
    assert (plain.effective_system_prompt, plain.skill_info) == ("", None)


@each_row("kind", ["declared", "of PydanticAI"])
def test_a_prompt_with_an_image_reaches_the_model_and_its_turn_has_a_note(kind):
    with ModelServer(["A pixel."]) as server:
        if kind == "declared":
            agent = Agent(Provider("openai:m", base_url=server.base_url))
        else:
            agent = pydantic_ai.Agent(model_of(server))
        result = go(aitest_run(agent, ["What is it?", IMAGE]))
        (asked,) = server.requests
    assert result.final_response == "A pixel."
    note = f"What is it?\n<image/png, {len(PIXEL)} bytes>"
    assert [turn.content for turn in result.turns] == [note, "A pixel."]
    text, image = asked.body["messages"][-1]["content"]
    assert text["text"] == "What is it?"
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


def test_the_files_of_a_conversation_have_a_limit_together():
    half = ImageContent(bytes(MAX_TOTAL_ATTACHED_BYTES // 2), "image/png")
    with ModelServer(["A pixel.", "Another one."]) as server:
        agent = Agent(Provider("openai:m", base_url=server.base_url))
        first = go(aitest_run(agent, ["What is it?", half]))
        second = go(aitest_run(agent, ["And this?", half], messages=first.messages))
        assert second.final_response == "Another one."
        with pytest.raises(InputError) as refused:
            go(aitest_run(agent, ["And this?", IMAGE], messages=second.messages))
        assert len(server.requests) == 2
    assert str(refused.value) == (
        f"aitest_run.prompt: the files of the conversation have {20_971_520 + len(PIXEL):,} bytes, "
        "of at most 20,971,520; send fewer or smaller ones"
    )


def test_a_file_in_an_address_counts_by_its_bytes():
    address = f"data:image/png;base64,{'A' * (MAX_TOTAL_ATTACHED_BYTES * 4 // 3)}"
    image = ImageUrl(address, media_type="image/png")
    with pytest.raises(InputError, match="files of the conversation have 20,971,"):
        go(aitest_run(Agent(Provider("openai:m")), ["What is it?", image]))


@each_row(
    ("agent", "prompt", "said"),
    [
        (Agent(Provider("openai:m")), [], "must have at least one part"),
        (Agent(Provider("openai:m")), ["a", 3], "got a part of type int"),
        (str, ["a", IMAGE], "must be a text for type; only declared and PydanticAI agents"),
    ],
)
def test_a_prompt_that_an_agent_cannot_take_is_refused(agent, prompt, said):
    with pytest.raises(InputError, match=said):
        go(aitest_run(agent, prompt))
