"""The one tool of a command-line program: its words, its limits, what the model reads of it."""

import pytest

from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.servers.cli import (
    check_subcommand,
    render_command_result,
    render_tool_description,
)
from ci_agent_eval.engine.servers.commands import CommandResult, StreamOutput
from ci_agent_eval.errors import InputError
from tests.tables import each_row


def output(text: str, size: int | None = None) -> StreamOutput:
    return StreamOutput(text, len(text) if size is None else size, len(text))


def ended(
    stdout: str = "", stderr: str = "", code: int = 0, timed_out: bool = False
) -> CommandResult:
    return CommandResult(code, output(stdout), output(stderr), timed_out)


def test_a_result_is_output_errors_and_exit_code() -> None:
    text = render_command_result(ended("half done\n", "it broke\n", 3), 30)
    assert text == "half done\n[stderr]\nit broke\n[exit code 3]"


def test_a_silent_success_still_says_how_it_ended() -> None:
    assert render_command_result(ended(), 30) == "[exit code 0]"


def test_what_was_cut_is_said() -> None:
    cut = CommandResult(0, output("abc", 1000), output("", 7), timed_out=False)
    assert render_command_result(cut, 30) == (
        "abc\n[cut: the first 3 of 1000 bytes]\n[cut: the first 0 of 7 bytes]\n[exit code 0]"
    )


def test_a_timeout_is_said_in_place_of_the_exit_code() -> None:
    text = render_command_result(ended("so far", code=137, timed_out=True), 2.5)
    assert text == "so far\n[killed: it had not ended after 2.5 s]"


@each_row("words", [["status"], ["status", "-s"], ["remote", "show", "origin"]])
def test_allowed_subcommands(words: list[str]) -> None:
    check_subcommand(words, ["status", "remote show"])
    check_subcommand(words, None)


@each_row(
    "words", [[], ["push"], ["remote"], ["remote", "add"], ["-C", "/", "status"], ["statuses"]]
)
def test_anything_else_is_refused_with_what_is_allowed(words: list[str]) -> None:
    with pytest.raises(InputError, match=r"not allowed: nothing was run.*status, remote show"):
        check_subcommand(words, ["status", "remote show"])


def test_an_empty_list_allows_nothing() -> None:
    with pytest.raises(InputError, match="allowed subcommand: none"):
        check_subcommand(["status"], [])


def test_the_description_says_what_a_model_must_know() -> None:
    server = CLIServer(name="git", command="git", allowed_subcommands=["status"])
    text = render_tool_description(server, "usage: git ...")
    assert text.startswith("Runs `git`.")
    assert "there is no shell" in text
    assert "Allowed subcommands: status." in text
    assert text.endswith("Its help (`--help`):\nusage: git ...")


def test_a_declared_description_comes_first() -> None:
    server = CLIServer(name="git", command="git", description="The shop's repository.")
    assert render_tool_description(server, None).startswith("The shop's repository.\n\n")
