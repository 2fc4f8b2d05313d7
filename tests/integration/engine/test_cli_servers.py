"""Real programs as tools: git in a scratch repository, and one that fails, floods and hangs."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelRetry, ToolFailed

from ci_agent_eval.checks import ErrorRecovery
from ci_agent_eval.engine import aitest_run
from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.cli import MAX_HELP_CHARACTERS
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.builders import talk, turn
from tests.integration.engine.rig import agent, go, session
from tests.model_server import ModelServer, Step
from tests.model_server.script import call as tool
from tests.servers.rig import CONTEXT, HERE, call, is_there
from tests.tables import each_row

TOOL = shlex.join([sys.executable, "-S", str(HERE / "tool.py")])


def a_tool(**changes: Any) -> CLIServer:
    return CLIServer(**{"name": "tool", "command": TOOL} | changes)


def execute(server: CLIServer, args: str, environ: dict[str, str] | None = None) -> str:
    async def main() -> str:
        async with (
            ServerPool(os.environ if environ is None else environ) as pool,
            pool.toolset(server, "one") as toolset,
        ):
            return str(await call(toolset, server.tool_name, args=args))

    return asyncio.run(main())


def failure(server: CLIServer, args: str) -> str:
    with pytest.raises(ToolFailed) as failed:
        execute(server, args)
    return failed.value.message


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (tmp_path / "kept.txt").write_text("kept")
    return tmp_path


def a_git(repository: Path, **changes: Any) -> CLIServer:
    return CLIServer(**{"name": "git", "command": "git", "cwd": repository} | changes)


@each_row("args", ["status; rm -rf kept.txt", "status > kept.txt", "status 'kept.txt"])
def test_a_shells_syntax_has_no_effect_and_is_told(repository: Path, args: str) -> None:
    with pytest.raises(ModelRetry, match="args"):
        execute(a_git(repository), args)
    assert (repository / "kept.txt").read_text() == "kept"


def test_only_allowed_subcommands_run(repository: Path) -> None:
    server = a_git(repository, allowed_subcommands=["status"])
    assert execute(server, "status -s") == "?? kept.txt\n[exit code 0]"
    for args in ("clean -fdx", "-c alias.status='!rm kept.txt' status", ""):
        with pytest.raises(ModelRetry, match="not allowed"):
            execute(server, args)
    assert (repository / "kept.txt").exists()


def test_arguments_environment_and_folder_are_what_was_declared(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/home/x", "DEPLOY_TOKEN": "no"}
    told = execute(a_tool(cwd=tmp_path, env={"MODE": "test"}), "show 'a b' c\\ d", environ)
    found = json.loads(told.removesuffix("\n[exit code 0]"))
    assert found["args"] == ["a b", "c d"]
    assert found["cwd"] == str(tmp_path)
    assert found["env"].keys() <= {"PATH", "HOME", "MODE", "LC_CTYPE"}
    assert (found["env"]["HOME"], found["env"]["MODE"]) == ("/home/x", "test")


def test_a_failure_fails_the_call_and_tells_what_a_result_would() -> None:
    told = failure(a_tool(), "fail 3")
    assert told == "half done\n[stderr]\nsomething is wrong\n[exit code 3]"


def test_output_is_cut_and_said_to_be() -> None:
    told = execute(a_tool(output_cap_bytes=25), "flood 50000000")
    assert told == (
        "0123456789012345678901234\n[cut: the first 25 of 50000000 bytes]\n"
        "[stderr]\neeeeeeeeeeeeeeeeeeeeeeeee\n[cut: the first 25 of 100 bytes]\n[exit code 0]"
    )


def test_a_program_that_does_not_end_is_killed_with_its_children() -> None:
    told = failure(a_tool(timeout=1), "wait")
    *pids, ending = told.splitlines()
    assert ending == "[killed: it had not ended after 1 s]"
    assert len(pids) == 2
    assert not any(is_there(int(pid)) for pid in pids)


def test_what_a_program_leaves_behind_is_killed_and_not_waited_for() -> None:
    pid, ending = execute(a_tool(), "leave").splitlines()
    assert ending == "[exit code 0]"
    assert not is_there(int(pid))


def test_a_cancelled_call_kills_the_program(tmp_path: Path) -> None:
    async def main() -> int:
        server = CLIServer(name="sh", command="sh", cwd=tmp_path)
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            os.mkfifo(tmp_path / "fifo")
            args = "-c 'echo $$ > fifo; exec sleep 1000'"
            running = asyncio.ensure_future(call(toolset, "sh_execute", args=args))
            pid = int(await asyncio.to_thread((tmp_path / "fifo").read_text))
            running.cancel()
            await asyncio.wait({running})
            assert running.cancelled()
            return pid

    assert not is_there(asyncio.run(main()))


@each_row(
    ("changes", "said"),
    [
        ({"command": "no-such-program"}, "there is no program"),
        ({"command": "./no-such-program"}, "there is no program"),
        ({"cwd": "/no/such/folder"}, "could not be started"),
    ],
)
def test_a_program_or_folder_that_is_not_there_is_the_worlds_error(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ServerError, match=said):
        execute(a_tool(**changes), "show")


def test_help_is_asked_for_once_and_cut(tmp_path: Path) -> None:
    script = tmp_path / "counted"
    script.write_text(f'#!/bin/sh\necho asked >> asked.log\nexec {TOOL} "$@"\n')
    script.chmod(0o755)
    server = a_tool(command="./counted", cwd=tmp_path, discover_help=True)

    async def described(pool: ServerPool) -> str:
        async with pool.toolset(server, "one") as toolset:
            tools = await toolset.get_tools(CONTEXT)
            return tools["tool_execute"].tool_def.description or ""

    async def main() -> list[str]:
        async with ServerPool(os.environ) as pool:
            return await asyncio.gather(*(described(pool) for _ in range(5)))

    texts = asyncio.run(main())
    assert len(set(texts)) == 1
    assert "usage: tool show|fail|flood|wait" in texts[0]
    assert f"[cut: the first {MAX_HELP_CHARACTERS} of" in texts[0]
    assert (tmp_path / "asked.log").read_text() == "asked\n"


def test_a_program_without_help_says_so_early() -> None:
    with pytest.raises(ServerError, match="gave no help"):
        execute(a_tool(discover_help=True, help_flag="nothing"), "show")


def test_a_program_s_failure_is_an_error_of_the_recorded_call(repository: Path) -> None:
    async def once(server: ModelServer) -> Any:
        async with session(servers=None) as opened:
            given = agent(server, cli_servers=[a_git(repository)])
            return await aitest_run(given, "show it", session=opened)

    script = [Step(tool_calls=[tool("git_execute", args="show nothing")]), Step(text="Shown.")]
    with ModelServer(script) as server:
        result = go(once(server))
    (made,) = result.tool_calls_for("git_execute")
    assert made.result is None
    assert made.error.endswith("[exit code 128]")
    sent = server.requests[-1].body
    assert "[exit code 128]" in json.dumps(sent)
    (found,) = ErrorRecovery().assertions(talk("show it", turn("Shown.", tool_calls=[made])))
    assert not found.passed
