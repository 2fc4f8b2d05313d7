"""--episode-report-dir: files are written there, when asked, and nothing else is touched."""

from __future__ import annotations

import pytest

NEEDS_EVIDENCE = False

TESTS = """
def test_one(episode):
    episode.check("one", True)

def test_two(episode):
    assert 1 == 2

def test_plain(): pass
"""


def tree(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_nothing_is_written_without_it(suite, pytester, workers):
    suite.write(TESTS)
    before = tree(pytester.path)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", workers)
    result.stdout.fnmatch_lines(["2 episodes: 1 passed, 1 failed"])
    written = [name for name in tree(pytester.path) if ".pyc" not in name]
    assert written == before


def test_the_files_of_a_run(suite, workers):
    suite.write(TESTS)
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
    suite.write(TESTS)
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    pytester.runpytest_inprocess("--rootdir=..", "--episode-report-dir=out", "..")
    assert (elsewhere / "out" / "results.json").exists()
    assert not (pytester.path / "out").exists()


def test_it_can_be_set_in_the_ini_file_and_the_option_wins(suite, pytester):
    suite.write(TESTS)
    pytester.makeini("[pytest]\nepisode_report_dir = from-ini\n")
    assert suite.run().results.episodes
    assert not (pytester.path / "from-ini").exists()
    pytester.runpytest_inprocess()
    assert (pytester.path / "from-ini" / "results.json").exists()


def test_a_former_runs_files_are_replaced_and_foreign_ones_left(suite):
    suite.write(TESTS)
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
    suite.write(TESTS)
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
    suite.write(TESTS)
    (pytester.path / "out").write_text("a file")
    for folder in ("out", "out/below"):
        result = pytester.runpytest_inprocess(f"--episode-report-dir={folder}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR, folder
        result.stderr.fnmatch_lines(["*a file is in the way*"])


def test_a_collection_error_is_in_the_session(suite, pytester):
    suite.write(TESTS)
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
