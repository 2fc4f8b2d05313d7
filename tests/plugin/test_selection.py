"""Which episodes run: -k, -x, --lf, repeated paths."""

from __future__ import annotations

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


ALL = ["test_a", "test_b", "test_c"]
SELECTIONS = [
    # The arguments; how many are selected and deselected, which end, and what the session says
    # of restrictions and paths.
    (["-k", "test_a or plain", "-m", "episode or not x"], 1, 2, ["test_a"],
     ("-k 'test_a or plain'", "-m 'episode or not x'"), ()),
    (["-x"], 3, 0, ["test_a", "test_b"], (), ()),
    (["--maxfail=1", "-k", "not test_a"], 2, 1, ["test_b"], ("-k 'not test_a'",), ()),
    (["test_suite.py::test_c", "test_suite.py::test_a"], 2, 0, ["test_a", "test_c"],
     ("test_suite.py::test_c", "test_suite.py::test_a"), ()),
    (["--deselect", "test_suite.py::test_b"], 2, 1, ["test_a", "test_c"],
     ("--deselect test_suite.py::test_b",), ()),
    (["--ignore", "other", "test_suite.py"], 3, 0, ALL, ("--ignore other",), ("test_suite.py",)),
    (["./", "-v"], 3, 0, ALL, (), (".",)),
    (["--lf"], 1, 0, ["test_b"], ("--lf",), ()),
]  # fmt: skip


def test_selected_and_deselected_tell_what_was_to_run(suite):
    suite.write(SUITE)
    for arguments, selected, deselected, ended, restrictions, paths in SELECTIONS:
        ran = suite.run(*arguments)
        session = ran.session
        found = (session.selected, session.deselected, sorted(ran.episodes))
        assert found == (selected, deselected, ended), arguments
        assert (session.restrictions, session.paths) == (restrictions, paths), arguments
        assert session.state == "finished"
        limits = {"-x", "--maxfail=1"} & {*arguments}
        assert session.stopped == ("stopping after 1 failures" if limits else None)
    assert suite.run("--shard=1/2").session.removed == (), "another shard takes nothing away"
    ran = suite.run("--setup-only", "-k", "test_a")
    assert (ran.session.selected, ran.session.state) == (1, "finished")
    episode = ran.episodes["test_a"]
    assert (episode.outcome, episode.reason) == ("skipped", "the test was set up but not called")


def test_a_stop_at_a_limit_is_no_interruption_of_workers_either(suite):
    suite.write(SUITE + "".join(f"\ndef test_{n}(episode): talk(episode)" for n in range(20)))
    session = suite.run("-x", "-n2").session
    assert (session.state, session.stopped) == ("finished", "stopping after 1 failures")


ITERATED = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=3, evidence="none")
def test_refund(episode): pass

@pytest.mark.episode(scenario_id="chat", gate="advisory")
def test_chat(episode): pass

def test_plain(): pass
"""


def test_what_the_ini_file_leaves_out_is_no_restriction(suite):
    suite.write(ITERATED)
    declared = {name: e.iterations for name, e in suite.run().episodes.items()}
    assert declared == {**{f"test_refund[{n}-of-3]": 3 for n in (1, 2, 3)}, "test_chat": 1}
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


def test_a_session_says_what_hooks_took_away_and_which_files_skipped_themselves(suite):
    suite.write(ITERATED, conftest=REMOVING)
    suite.pytester.makepyfile(
        test_other="import pytest\npytest.importorskip('not_there')",
        test_third="import pytest\npytest.skip('no key', allow_module_level=True)",
    )
    session = suite.run("-k", "refund or chat or plain", "-n2").session
    assert session.stopped is None
    assert [one.model_dump() for one in session.removed] == [
        {"scenario_id": "chat", "gate": "advisory", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": "conftest.py"},
    ]
    assert [(one.file, one.reason) for one in session.collection_skips] == [
        ("test_other.py", "could not import 'not_there': No module named 'not_there'"),
        ("test_third.py", "no key"),
    ]


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
