"""`--eval`: evaluations are collected beside the tests."""

from __future__ import annotations

import pytest

EVALUATION = """
def test_measured():
    assert 1 == 2
    assert 1 == 1
"""


@pytest.fixture(autouse=True)
def files(suite):
    suite.write("def test_strict(): assert 1")
    suite.pytester.makepyfile(chat_eval=EVALUATION)


def recorded(ran, name="test_measured"):
    return [(a.line, a.passed) for a in ran.episodes[name].assertions]


def test_evaluations_are_collected_with_it_or_by_their_names(suite):
    ran = suite.run("--eval", "-W", "error")
    ran.result.assert_outcomes(passed=2)
    assert ran.result.ret == 0
    assert recorded(ran) == [(2, False), (3, True)]
    episode = ran.episodes["test_measured"]
    assert (episode.mode, episode.gate, episode.outcome) == ("evaluation", "advisory", "failed")
    ran = suite.run()
    ran.result.assert_outcomes(passed=1)
    assert not ran.episodes
    for name in ("./chat_eval.py", "chat_eval.py::test_measured"):
        ran = suite.run(name)
        ran.result.assert_outcomes(passed=1)
        assert recorded(ran) == [(2, False), (3, True)]
    ran = suite.run("chat_eval.py", "--aitest-iterations=2")
    assert [(e.scenario_id, e.iteration) for e in ran.results.episodes] == [
        ("chat_eval.py::test_measured", 1),
        ("chat_eval.py::test_measured", 2),
    ]


def test_what_pytest_takes_for_a_test_stays_strict(suite):
    suite.pytester.makeini("[pytest]\neval_files = *eval*.py")
    suite.pytester.path.joinpath("chat_eval.py").unlink()
    names = ("test_chat_eval", "chat_eval_test")
    suite.pytester.makepyfile(**dict.fromkeys(names, EVALUATION))
    for arguments in (["--eval"], [f"{name}.py" for name in names]):
        ran = suite.run("-k", "measured", *arguments)
        ran.result.assert_outcomes(failed=2, deselected=1 if arguments == ["--eval"] else 0)
        assert not ran.episodes


def test_one_that_python_files_has_is_collected_once(suite):
    suite.pytester.makeini("[pytest]\npython_files = test_*.py *_eval.py")
    for arguments in ([], ["--eval"]):
        ran = suite.run(*arguments)
        ran.result.assert_outcomes(passed=2)
        assert recorded(ran) == [(2, False), (3, True)]


def test_the_pattern_is_a_setting(suite):
    suite.pytester.makeini("[pytest]\neval_files = talks/measured_*.py")
    folder = suite.pytester.mkdir("talks")
    (folder / "measured_one.py").write_text(EVALUATION)
    (folder / "unlike_it.py").write_text(EVALUATION)
    suite.pytester.makepyfile(measured_two=EVALUATION)
    ran = suite.run("--eval")
    ran.result.assert_outcomes(passed=2)
    assert [e.file for e in ran.results.episodes] == ["talks/measured_one.py"]


def test_selection_works_as_for_any_test(suite):
    suite.pytester.makepyfile(
        other_eval="""
        import pytest

        @pytest.mark.slow
        def test_other(): assert 0
        """
    )
    suite.pytester.makeini("[pytest]\nmarkers = slow")
    for arguments in (
        ["-k", "other"],
        ["-m", "slow"],
        ["other_eval.py"],
        ["--deselect=chat_eval.py"],
    ):
        ran = suite.run("--eval", *arguments)
        assert set(ran.episodes) == {"test_other"}
    listed = suite.run("--eval", "--collect-only", "-q").result
    listed.stdout.fnmatch_lines_random(["chat_eval.py::test_measured", "other_eval.py::test_other"])


def test_every_item_is_an_episode_with_or_without_our_fixture(suite):
    suite.pytester.makepyfile(
        chat_eval="""
        import unittest
        import pytest

        def test_function(): pass

        async def test_async(): pass

        class TestClass:
            @pytest.mark.parametrize("n", [1, 2])
            def test_method(self, n): pass

        class TestCase(unittest.TestCase):
            def test_unit(self): pass

        def test_with_it(episode):
            episode.check("fine", True)
        """
    )
    ran = suite.run("chat_eval.py")
    assert sorted(ran.episodes) == [
        "test_async",
        "test_function",
        "test_method[1]",
        "test_method[2]",
        "test_unit",
        "test_with_it",
    ]
    assert {e.mode for e in ran.results.episodes} == {"evaluation"}
