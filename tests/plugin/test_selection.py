"""Which episodes run: -k, -x, --lf, repeated paths; and reruns of one episode."""

from __future__ import annotations

import pytest

SUITE = """
import pytest

def talk(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns

def test_a(episode): talk(episode)
def test_b(episode): assert False
def test_c(episode): talk(episode)
def test_plain(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "selected", "ended"),
    [
        (["-k", "test_a or plain"], 1, ["test_a"]),
        (["-x"], 3, ["test_a", "test_b"]),
        (["--maxfail=1", "-k", "not test_a"], 2, ["test_b"]),
        (["test_suite.py::test_c", "test_suite.py::test_a"], 2, ["test_a", "test_c"]),
        (["--setup-only", "-k", "test_a"], 1, ["test_a"]),
    ],
    ids=["-k", "-x", "maxfail", "node ids", "setup-only"],
)
def test_selected_tells_what_was_to_run(suite, arguments, selected, ended):
    suite.write(SUITE)
    ran = suite.run(*arguments)
    assert ran.session.selected == selected
    assert ran.session.state == "finished"
    assert sorted(ran.episodes) == ended


def test_last_failed_runs_the_failed_episode_again(suite):
    suite.write(SUITE)
    suite.run()
    ran = suite.run("--lf")
    assert ran.session.selected == 1
    assert sorted(ran.episodes) == ["test_b"]


def test_set_up_but_not_called_is_skipped(suite):
    suite.write(SUITE)
    episode = suite.run("--setup-only", "-k", "test_a").episodes["test_a"]
    assert (episode.outcome, episode.reason) == ("skipped", "the test was set up but not called")


ITERATED = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=3, evidence="none")
def test_refund(episode): pass

@pytest.mark.episode(scenario_id="chat", gate="advisory")
def test_chat(episode): pass

def test_plain(): pass
"""


def test_an_episode_says_how_many_iterations_its_test_declares(suite):
    suite.write(ITERATED)
    declared = {name: e.iterations for name, e in suite.run().episodes.items()}
    assert declared == {**{f"test_refund[{n}-of-3]": 3 for n in (1, 2, 3)}, "test_chat": 1}


@pytest.mark.parametrize(
    ("arguments", "restrictions", "paths"),
    [
        ((), (), ()),
        (("-kchat", "-m", "episode or not x"), ("-k chat", "-m 'episode or not x'"), ()),
        (("--deselect=test_suite.py::test_chat",), ("--deselect test_suite.py::test_chat",), ()),
        (("--lf",), ("--lf",), ()),
        (("--ignore", "other"), ("--ignore other",), ()),
        (("test_suite.py::test_chat",), ("test_suite.py::test_chat",), ()),
        (("test_suite.py",), (), ("test_suite.py",)),
        (("./", "-v"), (), (".",)),
    ],
    ids=["none", "-k -m", "deselect", "lf", "ignore", "node id", "file", "folder"],
)
def test_a_session_says_what_the_command_line_restricts(suite, arguments, restrictions, paths):
    suite.write(ITERATED)
    session = suite.run(*arguments).session
    assert (session.restrictions, session.paths) == (restrictions, paths)
    assert session.removed == ()


def test_what_the_ini_file_leaves_out_is_no_restriction(suite):
    suite.write(ITERATED)
    suite.pytester.makeini("[pytest]\naddopts = -k chat")
    ran = suite.run()
    assert (ran.session.restrictions, ran.session.removed) == ((), ())
    assert sorted(ran.episodes) == ["test_chat"]


REMOVING = """
def pytest_collection_modifyitems(config, items):
    gone = [item for item in items if "3-of-3" in item.name]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone and "refund[2" not in item.name]
    items[:] = [item for item in items if "chat" not in item.name]
"""


def test_a_session_says_what_hooks_took_away(suite, workers):
    suite.write(ITERATED, conftest=REMOVING)
    session = suite.run("-k", "refund or chat or plain", workers).session
    assert session.stopped is None
    assert [one.model_dump() for one in session.removed] == [
        {"scenario_id": "chat", "gate": "advisory", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": "conftest.py"},
    ]


def test_another_shard_takes_nothing_away(suite):
    suite.write(ITERATED)
    assert suite.run("--shard=1/2").session.removed == ()


def test_a_session_says_which_files_skipped_themselves(suite, workers):
    suite.write(ITERATED)
    suite.pytester.makepyfile(
        test_other="import pytest\npytest.importorskip('not_there')",
        test_third="import pytest\npytest.skip('no key', allow_module_level=True)",
    )
    found = suite.run(workers).session.collection_skips
    assert [(one.file, one.reason) for one in found] == [
        ("test_other.py", "could not import 'not_there': No module named 'not_there'"),
        ("test_third.py", "no key"),
    ]


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    # What pytest-rerunfailures does, once.
    for attempt in (1, 2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        if attempt == 1 and failed:
            for report in reports:
                report.outcome = "rerun" if report.failed else report.outcome
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            break
        item._initrequest()
    return True
"""


def test_a_rerun_is_another_attempt(suite, workers):
    suite.write(
        """
        tries = []

        def test_flaky(episode):
            tries.append(1)
            with episode.turn("Hello") as turn:
                turn.reply("Hi")
            episode.check("second time lucky", len(tries) == 2)
        """,
        conftest=RERUNS,
    )
    ran = suite.run(workers)
    assert [(e.attempt, e.outcome) for e in ran.results.episodes] == [(1, "failed"), (2, "passed")]
    ran.result.stdout.fnmatch_lines(["1 episode: 1 passed; 1 rerun"])


def test_the_same_test_twice_is_two_iterations(suite):
    suite.write(
        "def test_a(episode): pass",
        conftest="""
            def pytest_collection_modifyitems(items):
                items.append(type(items[0]).from_parent(items[0].parent, name=items[0].name))
        """,
    )
    ran = suite.run()
    assert [(e.nodeid, e.iteration) for e in ran.results.episodes] == [
        ("test_suite.py::test_a", 1),
        ("test_suite.py::test_a", 2),
    ]
    assert ran.session.selected == 2


@pytest.mark.parametrize(
    ("workers", "arguments", "count"),
    [
        ("-n0", [], 0),
        ("-n0", ["-k", "test_a or plain"], 2),
        ("-n2", ["-k", "test_a or plain"], 2),
        ("-n0", ["--deselect", "test_suite.py::test_b"], 1),
        ("-n0", ["-m", "not episode", "-k", "not plain"], 0),
    ],
)
def test_deselected_episodes_are_counted(suite, workers, arguments, count):
    suite.write(SUITE)
    assert suite.run(workers, *arguments).session.deselected == count


@pytest.mark.parametrize(
    ("workers", "limit"), [("-n0", "-x"), ("-n0", "--maxfail=1"), ("-n2", "-x")]
)
def test_a_stop_at_a_limit_is_no_interruption(suite, workers, limit):
    suite.write(SUITE + "".join(f"\ndef test_{n}(episode): talk(episode)" for n in range(20)))
    session = suite.run(workers, limit).session
    assert session.state == "finished"
    assert session.stopped == "stopping after 1 failures"


def test_a_run_to_its_end_was_not_stopped(suite):
    suite.write(SUITE)
    assert suite.run().session.stopped is None
