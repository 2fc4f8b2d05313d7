from __future__ import annotations

import copy
import dataclasses
import re

import pytest

from ci_agent_eval.checks.rubric import Rubric
from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider, Wait
from ci_agent_eval.errors import InputError
from tests.tables import each_row

PROVIDER = Provider("openai:gpt-5-mini")


@each_row(
    ("spelt", "system", "name"),
    [
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        ("azure/gpt-5-mini", "azure", "gpt-5-mini"),
        ("openrouter/anthropic/claude-5", "openrouter", "anthropic/claude-5"),
        ("openrouter:anthropic/claude-5", "openrouter", "anthropic/claude-5"),
        ("ollama/llama3:8b", "ollama", "llama3:8b"),
        ("Gemini/gemini-3-pro", "google", "gemini-3-pro"),
    ],
)
def test_both_spellings_of_a_model_mean_the_same(spelt, system, name):
    provider = Provider(spelt)
    assert (provider.system, provider.model_name) == (system, name)
    assert provider.model_id == f"{system}:{name}"


def server(**overrides):
    return MCPServer(**{"command": ["python", "bank.py"], **overrides})


def cli(**overrides):
    return CLIServer(**{"name": "git", "command": "git", **overrides})


def agent(**overrides):
    return Agent(**{"provider": PROVIDER, **overrides})


@each_row(
    ("declare", "field"),
    [
        (lambda: Provider(""), "Provider.model"),
        (lambda: Provider("gpt-5-mini"), "Provider.model"),
        (lambda: Provider("openai:"), "Provider.model"),
        (lambda: Provider("openai:m", temperature=-1), "Provider.temperature"),
        (lambda: Provider("openai:m", temperature=True), "Provider.temperature"),
        (lambda: Provider("openai:m", temperature=float("nan")), "Provider.temperature"),
        (lambda: Provider("openai:m", max_tokens=0), "Provider.max_tokens"),
        (lambda: Provider("openai:m", rpm=1.5), "Provider.rpm"),
        (lambda: Provider("openai:m", tpm=-1), "Provider.tpm"),
        (lambda: Provider("openai:m", base_url=" "), "Provider.base_url"),
        (lambda: Provider("openai:m", api_key_env=""), "Provider.api_key_env"),
        (lambda: Provider("openai:m", top_p=0), "Provider.top_p"),
        (lambda: Provider("openai:m", top_p=1.5), "Provider.top_p"),
        (lambda: Provider("openai:m", seed="1"), "Provider.seed"),
        (lambda: Provider("openai:m", reasoning_effort="huge"), "Provider.reasoning_effort"),
        (lambda: Provider("openai:m", timeout_s=30_000), "Provider.timeout_s"),
        (lambda: Provider("openai:m", headers={"X": 1}), r"Provider.headers\['X'\]"),
        (lambda: Provider("openai:m", extra_body={"x": object()}), r"Provider.extra_body\['x'\]"),
        (lambda: server(command=None), "MCPServer.command"),
        (lambda: server(command=[]), "MCPServer.command"),
        (lambda: server(args="-x"), "MCPServer.args"),
        (lambda: server(env={"A": 1}), r"MCPServer.env\['A'\]"),
        (lambda: server(env=["A=1"]), "MCPServer.env"),
        (lambda: server(cwd=3), "MCPServer.cwd"),
        (lambda: server(transport="pipe"), "MCPServer.transport"),
        (lambda: server(transport="sse"), "MCPServer.url"),
        (lambda: server(url="http://127.0.0.1/mcp"), "MCPServer.url"),
        (lambda: server(isolation="own"), "MCPServer.isolation"),
        (lambda: server(isolation="reset"), "MCPServer.reset"),
        (lambda: server(reset="clear"), "MCPServer.reset"),
        (lambda: server(startup_timeout_s=0), "MCPServer.startup_timeout_s"),
        (lambda: server(call_timeout_s="1"), "MCPServer.call_timeout_s"),
        (lambda: cli(command=""), "CLIServer.command"),
        (lambda: cli(name="two words"), "CLIServer.name"),
        (lambda: cli(tool_prefix="a/b"), "CLIServer.tool_prefix"),
        (lambda: cli(shell=True), "CLIServer.shell"),
        (lambda: cli(timeout=0), "CLIServer.timeout"),
        (lambda: cli(output_cap_bytes=0), "CLIServer.output_cap_bytes"),
        (lambda: cli(allowed_subcommands="status"), "CLIServer.allowed_subcommands"),
        (lambda: Wait(log="("), "Wait.log"),
        (lambda: Wait.for_tools("balance"), "Wait.tools"),
        (lambda: Wait.ready(timeout_s=0), "Wait.timeout_s"),
        (lambda: agent(provider="openai:m"), "Agent.provider"),
        (lambda: agent(mcp_servers=server()), "Agent.mcp_servers"),
        (lambda: agent(mcp_servers=[cli()]), "Agent.mcp_servers"),
        (lambda: agent(cli_servers=["git"]), "Agent.cli_servers"),
        (lambda: agent(max_turns=0), "Agent.max_turns"),
        (lambda: agent(retries=-1), "Agent.retries"),
        (lambda: agent(allowed_tools="balance"), "Agent.allowed_tools"),
        (lambda: agent(system_prompt=3), "Agent.system_prompt"),
        (lambda: agent(name=""), "Agent.name"),
    ],
)
def test_a_wrong_value_is_named_by_its_field(declare, field):
    with pytest.raises(InputError, match=rf"^{field}: "):
        declare()


def test_a_secret_in_a_declaration_is_in_no_message_and_no_repr():
    secret = "s3cr3t-value"
    made = server(env={"TOKEN": secret})
    made_http = MCPServer(
        transport="sse", url="http://127.0.0.1", headers={"Authorization": secret}
    )
    assert secret not in repr([made, made_http, cli(env={"TOKEN": secret})])
    with pytest.raises(InputError) as raised:
        server(env={"TOKEN": [secret]})
    assert secret not in str(raised.value)
    with pytest.raises(InputError, match=r"list of MCPServer, got a value of type dict$"):
        agent(mcp_servers=[{"command": ["bank"], "env": {"TOKEN": secret}}])


def test_declarations_can_be_compared_kept_as_keys_and_changed_by_copy():
    one = agent(mcp_servers=[server(env={"A": "1"})], cli_servers=[cli()], allowed_tools=["x"])
    same = agent(mcp_servers=(server(env={"A": "1"}),), cli_servers=(cli(),), allowed_tools=("x",))
    assert one == same == copy.deepcopy(one)
    assert hash(one) == hash(same)
    assert one != dataclasses.replace(one, max_turns=3)


def test_names_that_messages_use():
    assert server(args=["--port", "1"]).label == "python bank.py --port 1"
    assert server(name="bank").label == "bank"
    assert server(command="bank").command == ("bank",)
    assert cli().tool_name == "git_execute"
    assert cli(tool_prefix="vcs").tool_name == "vcs_execute"
    assert agent().label == "openai:gpt-5-mini"
    assert agent(name="teller").label == "teller"


@each_row(
    ("make", "field"),
    [
        (lambda: Wait.ready(30_000), "Wait.timeout_s"),
        (lambda: Wait.for_tools(["a"], 30_000), "Wait.timeout_s"),
        (lambda: Wait.for_log("up", 30_000), "Wait.timeout_s"),
        (lambda: MCPServer(command=["x"], startup_timeout_s=30_000), "MCPServer.startup_timeout_s"),
        (lambda: MCPServer(command=["x"], call_timeout_s=30_000), "MCPServer.call_timeout_s"),
        (lambda: CLIServer(name="x", command="x", timeout=30_000), "CLIServer.timeout"),
        (lambda: Rubric("x", "openai:m", timeout_s=30_000), "Rubric.timeout_s"),
    ],
)
def test_seconds_that_can_only_be_milliseconds_are_refused(make, field):
    said = "is in seconds, at most 3600, got 30000, which is 8.3 hours; .* milliseconds, write 30$"
    with pytest.raises(InputError, match=rf"{re.escape(field)}: {said}"):
        make()


def test_an_hour_is_seconds():
    assert Wait.ready(3_600).timeout_s == 3_600
