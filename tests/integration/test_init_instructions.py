"""`agent-eval init --agent-instructions`: a paragraph at the end, and nothing else is changed."""

from __future__ import annotations

import subprocess

import pytest

from tests.processes import run_agent_eval, started_on_terminal

OWN = b"# Rules\n\nBe kind.\n"
FLAG = ("init", "--agent-instructions")


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_the_paragraph_follows_the_text_of_the_author(repository):
    file = repository / "AGENTS.md"
    file.write_bytes(OWN)
    done = run_agent_eval(*FLAG, cwd=repository)
    assert (done.returncode, "wrote: AGENTS.md" in done.stdout) == (0, True)
    before, _, paragraph = file.read_bytes().partition(b"\n<!-- agent-eval: begin -->\n")
    assert before == OWN
    assert paragraph.endswith(b"\n<!-- agent-eval: end -->\n")
    assert b"`agent-eval run tests/episodes --scenario ID`" in paragraph


def test_a_second_run_changes_nothing(repository):
    (repository / "CLAUDE.md").write_bytes(OWN.rstrip())
    run_agent_eval(*FLAG, cwd=repository)
    written = (repository / "CLAUDE.md").read_bytes()
    assert written.startswith(OWN.rstrip() + b"\n\n<!--")
    again = run_agent_eval(*FLAG, cwd=repository)
    assert "unchanged: CLAUDE.md" in again.stdout
    assert (repository / "CLAUDE.md").read_bytes() == written


@pytest.mark.parametrize(
    "own", [b"<!-- agent-eval: begin -->\nmine", b"x\n<!-- agent-eval: begin -->\n"]
)
def test_a_paragraph_of_the_author_is_left_as_it_is(repository, own):
    (repository / "AGENTS.md").write_bytes(own)
    done = run_agent_eval(*FLAG, cwd=repository)
    assert "left as it is: AGENTS.md" in done.stdout
    assert (repository / "AGENTS.md").read_bytes() == own


def test_line_ends_and_bytes_of_the_file_are_kept(repository):
    own = b"# R\xe9gles\r\n"
    (repository / "AGENTS.md").write_bytes(own)
    run_agent_eval(*FLAG, cwd=repository)
    written = (repository / "AGENTS.md").read_bytes()
    assert written.startswith(own + b"\r\n<!-- agent-eval: begin -->\r\n")
    assert written.count(b"\n") == written.count(b"\r\n")
    assert "unchanged: AGENTS.md" in run_agent_eval(*FLAG, cwd=repository).stdout


def test_a_file_that_leads_to_the_other_one_is_left_out(repository):
    (repository / "AGENTS.md").write_bytes(OWN)
    (repository / "CLAUDE.md").write_bytes(b"@AGENTS.md\n")
    run_agent_eval(*FLAG, cwd=repository)
    assert (repository / "CLAUDE.md").read_bytes() == b"@AGENTS.md\n"
    assert (repository / "AGENTS.md").read_bytes() != OWN


def test_no_file_outside_is_written_through_a_link(repository, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "AGENTS.md"
    outside.write_bytes(OWN)
    (repository / "AGENTS.md").symlink_to(outside)
    done = run_agent_eval(*FLAG, cwd=repository)
    assert "left as it is: AGENTS.md" in done.stdout
    assert outside.read_bytes() == OWN


def test_without_the_option_and_a_terminal_nothing_is_added(repository):
    (repository / "AGENTS.md").write_bytes(OWN)
    done = run_agent_eval("init", "--yes", cwd=repository)
    assert "AGENTS.md" not in done.stdout
    assert (repository / "AGENTS.md").read_bytes() == OWN


def test_without_a_file_the_option_writes_one(repository):
    done = run_agent_eval(*FLAG, cwd=repository)
    assert "wrote: AGENTS.md" in done.stdout
    assert (repository / "AGENTS.md").read_bytes().startswith(b"<!-- agent-eval: begin -->\n")


@pytest.mark.parametrize(("answer", "is_added"), [("y", True), ("n", False)])
def test_on_a_terminal_init_asks(repository, answer, is_added):
    (repository / "AGENTS.md").write_bytes(OWN)
    choices = ("--baseline", "--no-forks", "--docker", "--shards", "1")
    with started_on_terminal("-m", "ci_agent_eval", "init", *choices, cwd=repository) as program:
        program.read_until("Add a paragraph for coding agents to AGENTS.md? [Y/n]: ")
        program.send(f"{answer}\n")
        program.read_rest()
    assert program.process.returncode == 0
    assert ((repository / "AGENTS.md").read_bytes() != OWN) is is_added
