"""The one tool of a program: its description, its subcommands, and a model's `args`.

They are split as a shell would, and a shell's operators are refused.
"""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.servers.cli import (
    check_subcommand,
    render_tool_description,
    split_arguments,
)
from ci_agent_eval.errors import InputError
from tests.tables import each_row


@each_row(
    ("text", "words"),
    [
        ("", []),
        ("status --porcelain\n", ["status", "--porcelain"]),
        ("commit -m 'a; b | c && d > e'", ["commit", "-m", "a; b | c && d > e"]),
        ('log --grep "a|b" a\\;b', ["log", "--grep", "a|b", "a;b"]),
        ("log '$(id)' '`id`' '$HOME'", ["log", "$(id)", "`id`", "$HOME"]),
        ('log ^foo$ "bar$" 5$', ["log", "^foo$", "bar$", "5$"]),
        ("log $HOME `id`", ["log", "$HOME", "`id`"]),
        ("show HEAD~1 stash@{0} *.py #12", ["show", "HEAD~1", "stash@{0}", "*.py", "#12"]),
        ("for-each-ref --format=%(refname)", ["for-each-ref", "--format=%(refname)"]),
        ("''", [""]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split_arguments(text) == words


@each_row(
    ("text", "found"),
    [
        ("status; rm -rf x", "';'"),
        ("status ; rm -rf x", "';'"),
        ("status && rm x", "'&'"),
        ("status &", "'&'"),
        ("log | head", "'|'"),
        ("log > file", "'>'"),
        ("log < file", "'<'"),
        ("status\nrm x", r"'\\n'"),
    ],
)
def test_shell_syntax_is_refused(text: str, found: str) -> None:
    with pytest.raises(InputError, match=f"{found} in args .*: nothing was run"):
        split_arguments(text)


def test_a_nul_is_refused() -> None:
    with pytest.raises(InputError, match="NUL"):
        split_arguments("a\0b")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_whatever_is_quoted_arrives_as_it_is(words: list[str]) -> None:
    assert split_arguments(shlex.join(words)) == words


def test_more_than_a_system_takes_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="3000000 characters"):
        split_arguments("x" * 3_000_000)


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
