"""The options about episodes: activity, again, report folder, debugger, and options in sessions."""

from __future__ import annotations

import json

import pytest

from tests.processes import run_agent_eval, started_on_terminal

# --episode-again: some scenarios again, as often as the file says.


TESTS = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=9, min_passes=9)
def test_refund(episode): pass

@pytest.mark.episode(iterations="auto")
def test_auto(episode): pass

def test_once(episode): pass

def test_other(episode): pass

def test_plain(): pass
"""


@pytest.fixture
def again(suite, tmp_path):
    def run(other=None, *arguments, **iterations):
        file = tmp_path / "again.json"
        names = {name.replace("__", "::"): n for name, n in iterations.items()}
        file.write_text(json.dumps({"iterations": names, "other_checkout": other}))
        return suite.run(f"--episode-again={file}", *arguments)

    return run


def test_only_the_named_scenarios_run_as_often_as_asked(suite, again):
    suite.write(TESTS)
    ran = again(None, refund=3, **{"test_suite.py::test_auto": 2, "test_suite.py::test_once": 1})
    found = sorted((e.scenario_id, e.iteration) for e in ran.results.episodes)
    assert found == [
        ("refund", 1), ("refund", 2), ("refund", 3),
        ("test_suite.py::test_auto", 1), ("test_suite.py::test_auto", 2),
        ("test_suite.py::test_once", 1),
    ]  # fmt: skip
    assert ran.session.selected == 6


def test_code_of_the_other_checkout_is_an_error_from_the_first_iteration_on(
    suite, again, tmp_path_factory, monkeypatch
):
    other = tmp_path_factory.mktemp("other")
    (other / "agent_of_head.py").write_text("")
    monkeypatch.syspath_prepend(str(other))
    suite.write("import agent_of_head\n" + TESTS)
    ran = again(str(other), refund=2)
    assert [e.outcome for e in ran.results.episodes] == ["error", "error"]
    assert "agent_of_head comes from the other checkout" in ran.results.episodes[0].reason


# --episode-report-dir: files are written there, when asked, and nothing else is touched.


NEEDS_EVIDENCE = False

TESTS_EPISODE_REPORT_DIR = """
def test_one(episode):
    episode.check("one", True)

def test_two(episode):
    assert 1 == 2

def test_plain(): pass
"""


def tree(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_nothing_is_written_without_it(suite, pytester, workers):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    before = tree(pytester.path)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", workers)
    result.stdout.fnmatch_lines(["2 episodes: 1 passed, 1 failed"])
    written = [name for name in tree(pytester.path) if ".pyc" not in name]
    assert written == before


def test_the_files_of_a_run(suite, workers):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    ran = suite.run(workers)
    assert [e.outcome for e in ran.results.episodes] == ["passed", "failed"]
    assert ran.session.state == "finished"
    assert ran.session.exit_status == 1
    assert ran.session.selected == 2
    names = {name.partition("/")[2] for name in tree(ran.folder) if name.startswith("episodes/")}
    assert names <= ({"main.jsonl"} if workers == "-n0" else {"gw0.jsonl", "gw1.jsonl"})
    assert tree(ran.folder)[-3:] == ["junit.xml", "results.json", "session.json"]
    assert [line.event for line in ran.journal].count("ended") == 2


def test_it_is_relative_to_where_pytest_was_started(suite, pytester, monkeypatch):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    pytester.runpytest_inprocess("--rootdir=..", "--episode-report-dir=out", "..")
    assert (elsewhere / "out" / "results.json").exists()
    assert not (pytester.path / "out").exists()


def test_it_can_be_set_in_the_ini_file_and_the_option_wins(suite, pytester):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    pytester.makeini("[pytest]\nepisode_report_dir = from-ini\n")
    assert suite.run().results.episodes
    assert not (pytester.path / "from-ini").exists()
    pytester.runpytest_inprocess()
    assert (pytester.path / "from-ini" / "results.json").exists()


def test_a_former_runs_files_are_replaced_and_foreign_ones_left(suite):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    ran = suite.run("-n2")
    notes = {"notes.txt": "mine", "episodes/notes.jsonl": "mine", "episodes/gw0.jsonl.bak": "mine"}
    for name, text in notes.items():
        (ran.folder / name).write_text(text)
    before = ran.results
    assert suite.run("--collect-only").results == before
    again = suite.run("-k", "test_one")
    assert [e.outcome for e in again.results.episodes] == ["passed"]
    for name, text in notes.items():
        assert (ran.folder / name).read_text() == text


def test_a_foreign_file_of_our_name_is_not_overwritten(suite, pytester):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    for name in ("results.json", "session.json", "episodes/main.jsonl"):
        foreign = pytester.path / "report" / name
        foreign.parent.mkdir(parents=True, exist_ok=True)
        foreign.write_text("[1, 2, 3]")
        ran = suite.run()
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR, name
        said = "*was not written by this program and would be overwritten*"
        ran.result.stderr.fnmatch_lines([said])
        assert foreign.read_text() == "[1, 2, 3]"
        foreign.unlink()


def test_a_file_in_its_place_is_a_usage_error(suite, pytester):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    (pytester.path / "out").write_text("a file")
    for folder in ("out", "out/below"):
        result = pytester.runpytest_inprocess(f"--episode-report-dir={folder}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR, folder
        result.stderr.fnmatch_lines(["*a file is in the way*"])


def test_a_collection_error_is_in_the_session(suite, pytester):
    suite.write(TESTS_EPISODE_REPORT_DIR)
    pytester.makepyfile(test_broken="import no_such_module")
    ran = suite.run()
    assert ran.session.state == "finished"
    assert ran.session.exit_status != 0
    (error,) = ran.session.collection_errors
    assert error.nodeid == "test_broken.py"
    assert "no_such_module" in error.message


def test_no_episodes_is_a_result_too(suite):
    suite.write("def test_plain(): pass")
    ran = suite.run()
    assert ran.session.selected == 0
    assert ran.results.episodes == ()
    assert "= episodes =" not in ran.result.stdout.str()


# --episode-suite, --episode-commit and --episode-watched: what is said of the session.


TESTS_SESSION_OPTIONS = "def test_one(episode): pass"


def test_they_are_in_the_session_and_the_environment_says_of_which_run_it_is(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    suite.write(TESTS_SESSION_OPTIONS)
    options = ("--episode-suite=refunds", "--episode-commit=abc123", "--episode-watched")
    ran = suite.run(*options)
    session = ran.session
    assert (session.suite, ran.results.suite, session.commit) == ("refunds", "refunds", "abc123")
    assert (session.watched, session.process_status) == (True, None)
    assert (session.run, session.attempt) == ("77", 3)


def test_by_default_nobody_waits_and_no_commit_of_the_environment_is_taken(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "def456")
    suite.write(TESTS_SESSION_OPTIONS)
    ran = suite.run()
    assert (ran.session.commit, ran.session.watched, ran.results.suite) == (None, False, "default")
    suite.pytester.makeini("[pytest]\nepisode_suite = from-ini\n")
    assert suite.run().results.suite == "from-ini"


# pytest's `--pdb`: the conversation, then a prompt where the episode failed; on a real terminal.


SUITE = """
import pytest
from ci_agent_eval import conversation

@pytest.mark.episode("late_check")
def test_late_check(episode):
    with episode.turn("Where is order 7?") as turn:
        turn.tool_call("search_orders", {"id": 7})
        turn.reply("It is \\x1b[2Jlost.")
    episode.check("says sent", "sent" in episode.turns[-1].content)
    state = "after the check"

def answer(message):
    raise ValueError("no model")

@pytest.mark.episode("agent_raises")
async def test_agent_raises(episode, aitest_run):
    await aitest_run(answer, "Hello")

class Desk:
    async def respond(self, message):
        return "Lost."

@conversation("driven", Desk)
async def test_driven(agent):
    await agent.send("Where is order 7?")
    assert agent.conversation.last.text == "Sent."

def test_plain():
    number = 7
    assert number == 8
"""
PYTEST = ("-m", "pytest", "--pdb", "-p", "no:cacheprovider", "-p", "no:randomly", "--color=no")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def debug(program, *commands):
    """Return the output before the next prompt, and each command's answer; and continue."""
    before = program.read_until("(Pdb) ")
    answers = []
    for command in commands:
        program.send(f"{command}\n")
        answers.append(program.read_until("(Pdb) ").partition("\n")[2].strip())
    program.send("continue\n")
    return before, answers


def test_it_stops_where_each_episode_failed(folder):
    with started_on_terminal(*PYTEST, "test_suite.py", cwd=folder) as program:
        late_check = debug(program, "p state", "p episode.tool_calls[0].name")
        raising = debug(program, "p episode.scenario_id")
        driven = debug(program, "p agent.conversation.last.text")
        plain = debug(program, "p number")
        program.read_rest()
    assert program.process.returncode == 1
    expect_a_failed_check_at_its_line_after_the_test_has_returned(*late_check)
    before, answers = raising
    assert "  user       Hello\n" in before
    # In the test, and not in our code.
    assert 'test_agent_raises()\n-> await aitest_run(answer, "Hello")' in before
    assert answers == ["'agent_raises'"]
    before, answers = driven
    assert "  assistant  Lost." in before
    assert "test_driven()\n-> assert agent" in before
    assert answers == ["'Lost.'"]
    before, answers = plain
    assert "conversation >" not in before
    assert answers == ["7"]


def expect_a_failed_check_at_its_line_after_the_test_has_returned(before, answers):
    conversation = before.partition("conversation >")[2].partition(">>>")[2].splitlines()[1:4]
    assert conversation == [
        "  user       Where is order 7?",
        "  calls      search_orders(id=7)",
        "  assistant  It is \N{REPLACEMENT CHARACTER}[2Jlost.",
    ]
    assert "test_suite.py(10)test_late_check()\n-> episode.check(" in before
    assert answers == ["'after the check'", "'search_orders'"]


def test_agent_eval_run_refuses_a_debugger_without_a_terminal(folder):
    done = run_agent_eval("run", "test_suite.py", "--", "--pdb", cwd=folder)
    assert done.returncode == 2
    assert "pytest --pdb" in done.stderr
