"""The one tool of a command-line program: its subcommands and its description."""

import pytest

from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.servers.cli import check_subcommand, render_tool_description
from ci_agent_eval.errors import InputError
from tests.tables import each_row


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
