"""pytest's own options work on episodes as on any test."""

from __future__ import annotations

import pytest

FIVE = """
import pytest

def test_a(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")

def test_b(episode): assert 1 == 2
def test_c(episode): episode.check("polite", False)
def test_d(episode): pass
def test_plain(): pass
"""


@pytest.fixture
def suite(suite):
    """These suites are about options of pytest, and need no evidence."""
    return suite.without_evidence()


def test_a_suite_of_episodes_fails_and_passes_where_its_tests_do(suite):
    suite.write(test_five=FIVE)
    ran = suite.run()
    assert ran.status == 1, ran.output
    assert ran.junit == {
        "test_a": "passed",
        "test_b": "failed",
        "test_c": "failed",
        "test_d": "passed",
        "test_plain": "passed",
    }
    assert ran.outcomes == {
        "test_a": "passed",
        "test_b": "failed",
        "test_c": "failed",
        "test_d": "passed",
    }


def test_a_suite_whose_episodes_pass_is_green_with_warnings_as_errors(suite):
    suite.write(test_five=FIVE)
    ran = suite.run("-k", "test_a or test_d or plain")
    assert ran.status == 0, ran.output
    assert "warning" not in ran.output


@pytest.mark.parametrize(
    ("arguments", "ended", "stopped"),
    [
        (["-x"], ["test_a", "test_b"], "stopping after 1 failures"),
        (["--maxfail=1"], ["test_a", "test_b"], "stopping after 1 failures"),
        (["--maxfail=2"], ["test_a", "test_b", "test_c"], "stopping after 2 failures"),
        (["--maxfail=3"], ["test_a", "test_b", "test_c", "test_d"], None),
    ],
    ids=["-x", "maxfail 1", "maxfail 2", "maxfail not reached"],
)
def test_the_run_stops_at_the_limit_and_says_so(suite, arguments, ended, stopped):
    suite.write(test_five=FIVE)
    ran = suite.run(*arguments)
    assert ran.status == 1, ran.output
    assert sorted(ran.outcomes) == ended
    assert ran.session["selected"] == 4
    assert ran.session["state"] == "finished"
    assert ran.session.get("stopped") == stopped


def test_last_failed_runs_the_failed_episodes_and_no_other(suite):
    suite.write(test_five=FIVE)
    suite.run()
    again = suite.run("--lf")
    assert again.status == 1, again.output
    assert again.outcomes == {"test_b": "failed", "test_c": "failed"}
    suite.write(test_five=FIVE.replace("1 == 2", "2 == 2").replace("False", "True"))
    assert suite.run("--lf").outcomes == {"test_b": "passed", "test_c": "passed"}
    everything = suite.run("--lf")
    assert everything.status == 0, everything.output
    assert len(everything.outcomes) == 4


PDB = """
import pytest

def test_a(episode): pass

def test_b(episode):
    amount = 41 + 1
    assert amount == 43

async def test_c(episode):
    amount = 51 + 1
    assert amount == 53

def test_d(episode):
    episode.check("polite", False)
"""


def test_the_debugger_stops_at_each_failing_assertion_and_goes_on(suite):
    suite.write(test_pdb=PDB)
    ran = suite.run("--pdb", stdin="p amount * 100\nc\np amount * 100\nc\nc\n")
    assert ran.status == 1, ran.output
    assert "4200" in ran.output
    assert "5200" in ran.output
    assert ran.outcomes == {
        "test_a": "passed",
        "test_b": "failed",
        "test_c": "failed",
        "test_d": "failed",
    }


def test_leaving_the_debugger_ends_the_run_and_keeps_what_there_was(suite):
    suite.write(test_pdb=PDB)
    ran = suite.run("--pdb", stdin="p amount * 100\nq\n")
    assert ran.status == 2, ran.output
    assert "4200" in ran.output
    assert ran.outcomes == {"test_a": "passed", "test_b": "failed"}
    assert ran.session["state"] == "interrupted"


def test_a_debugger_without_input_does_not_hang(suite):
    suite.write(test_pdb=PDB)
    ran = suite.run("--pdb", "-x")
    assert ran.status != 0
    assert "(Pdb)" in ran.output
