"""What of a declaration is secret."""

from __future__ import annotations

import base64

from ci_agent_eval.engine.adapters.command import CommandAgent
from ci_agent_eval.engine.adapters.http import HTTPAgent
from ci_agent_eval.engine.declarations import (
    Agent,
    CLIServer,
    MCPServer,
    Provider,
    find_declared_secrets,
)
from tests.tables import each_row

SECRET = "k4Wq-9Zt/Lx2="
BASIC = base64.b64encode(f"clerk:{SECRET}".encode()).decode()


def a_web(**fields):
    return MCPServer(transport="streamable-http", **{"url": "http://127.0.0.1/mcp", **fields})


def an_agent(*mcp, cli=(), **provider):
    return Agent(Provider("openai:gpt-5-mini", **provider), mcp_servers=mcp, cli_servers=cli)


@each_row(
    "agent",
    [
        an_agent(MCPServer("bank", env={"BANK_TOKEN": SECRET})),
        an_agent(MCPServer("bank", env={"BANK_URL": f"redis://clerk:{SECRET[:8]}@host/"})),
        an_agent(MCPServer("bank", args=["--api-key", SECRET])),
        an_agent(MCPServer("bank", args=[f"--api-key={SECRET}"])),
        an_agent(MCPServer(["env", f"API_KEY={SECRET}", "bank"])),
        an_agent(a_web(headers={"X-Desk": SECRET})),
        an_agent(a_web(headers={"Authorization": f"Bearer {SECRET}"})),
        an_agent(a_web(headers={"Authorization": f"Basic {BASIC}"})),
        an_agent(a_web(headers={"Cookie": f'theme=dark; session="{SECRET}"'})),
        an_agent(a_web(url=f"http://127.0.0.1/mcp?token={SECRET}")),
        an_agent(headers={"X-Api-Key": SECRET}),
        an_agent(extra_body={"api_key": SECRET}),
        an_agent(cli=[CLIServer("git", "git", env={"GIT_PASSWORD": SECRET})]),
        an_agent(cli=[CLIServer("desk", f"desk --password {SECRET}")]),
        an_agent(api_key_env="DESK"),
        HTTPAgent("http://127.0.0.1/", headers={"X-Desk": SECRET}),
        CommandAgent(["desk"], env={"DESK_SECRET": SECRET}),
    ],
)
def test_is_found(agent):
    assert any(SECRET[:8] in found for found in find_declared_secrets(agent, {"DESK": SECRET}))


@each_row(
    "agent",
    [
        an_agent(MCPServer(["python", "-m", "bank"], env={"LOG_LEVEL": "everything-there-is"})),
        an_agent(MCPServer("bank", args=["--token", "--verbose"])),
        an_agent(a_web(headers={"Accept": "application/json, text/event-stream"})),
        an_agent(a_web(headers={"X-Desk": "front"})),
        an_agent(api_key_env="UNSET_KEY"),
        lambda prompt: prompt,
        HTTPAgent("http://127.0.0.1/"),
        CommandAgent(["desk"]),
    ],
)
def test_what_is_no_secret_stays(agent):
    assert not list(find_declared_secrets(agent, {"DESK": SECRET}))
