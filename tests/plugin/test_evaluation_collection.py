"""How evaluations are found and imported: as any test file, but by our loader."""

from __future__ import annotations

import sys

import pytest

EVALUATION = """
def test_measured():
    assert 1 == 2
    assert 1 == 1
"""


def recorded(ran, name="test_measured"):
    return [(a.line, a.passed) for a in ran.episodes[name].assertions]


@pytest.fixture
def packages(suite):
    """Two packages, each with a file of the same name, and helpers that they import."""
    for name in ("one", "two"):
        package = suite.pytester.mkpydir(name)
        (package / "helpers.py").write_text(f"NAME = {name!r}\n")
        (package / "chat_eval.py").write_text(
            "from .helpers import NAME\n"
            f"def test_{name}():\n"
            f"    assert NAME == {name!r}\n"
            "    assert NAME == 'other'\n"
        )
    return suite


@pytest.mark.parametrize(
    ("workers", "mode"),
    [("-n0", "prepend"), ("-n2", "importlib")],
)
def test_import_modes(packages, mode, workers):
    ran = packages.run(f"--import-mode={mode}", "--eval", workers)
    ran.result.assert_outcomes(passed=2)
    assert recorded(ran, "test_one") == recorded(ran, "test_two") == [(3, True), (4, False)]
    assert {e.file for e in ran.results.episodes} == {"one/chat_eval.py", "two/chat_eval.py"}


def test_no_package_and_a_name_of_its_own(suite):
    for name in ("a", "b"):
        (suite.pytester.mkdir(name) / "chat_eval.py").write_text(EVALUATION)
    ran = suite.run("--import-mode=importlib", "--eval")
    ran.result.assert_outcomes(passed=2)


def test_pyargs(packages, monkeypatch):
    monkeypatch.syspath_prepend(packages.pytester.path)
    ran = packages.run_apart("--pyargs", "one.chat_eval")
    ran.result.assert_outcomes(passed=1)
    assert recorded(ran, "test_one") == [(3, True), (4, False)]


def test_from_another_folder_than_the_root(packages, monkeypatch):
    (packages.pytester.path / ".git").mkdir()
    monkeypatch.chdir(packages.pytester.path / "two")
    packages.pytester.makeini("[pytest]")
    ran = packages.run(
        "chat_eval.py", "--rootdir=..", f"--episode-report-dir={packages.pytester.path}/report"
    )
    assert recorded(ran, "test_two") == [(3, True), (4, False)]
    assert ran.episodes["test_two"].file == "two/chat_eval.py"


def test_a_file_reached_by_a_link(suite):
    real = suite.pytester.mkdir("real")
    (real / "chat_eval.py").write_text(EVALUATION)
    (suite.pytester.path / "linked").symlink_to(real, target_is_directory=True)
    ran = suite.run("linked/chat_eval.py")
    assert recorded(ran) == [(3, False), (4, True)]


def test_a_name_with_a_dot_in_it(suite):
    (suite.pytester.path / "chat.v2_eval.py").write_text(EVALUATION)
    ran = suite.run("--import-mode=importlib", "chat.v2_eval.py")
    assert recorded(ran) == [(3, False), (4, True)]


def test_fixtures_of_a_conftest_are_there_and_strict(suite):
    suite.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def fine():
            assert 1
            return 3

        @pytest.fixture
        def broken():
            assert 0, "no measurement"
        """
    )
    suite.pytester.makepyfile(
        chat_eval="""
        def test_fine(fine):
            assert fine == 4

        def test_broken(broken): pass
        """
    )
    ran = suite.run("chat_eval.py")
    ran.result.assert_outcomes(passed=1, errors=1)
    assert recorded(ran, "test_fine") == [(2, False)]
    assert ran.episodes["test_broken"].outcome == "error"


def test_what_a_test_imports_from_an_evaluation_is_strict_there(suite):
    """And the evaluation is measured all the same, though the test imported it first."""
    suite.pytester.makepyfile(
        chat_eval="""
        def must_be_one(n):
            assert n == 1

        def test_measured():
            must_be_one(2)
            assert 1 == 1
        """,
        test_a="""
        import pytest
        from chat_eval import must_be_one

        def test_strict(episode):
            must_be_one(1)
            with pytest.raises(AssertionError, match="assert 3 == 1"):
                must_be_one(3)
        """,
    )
    ran = suite.without_evidence().run("--eval")
    ran.result.assert_outcomes(passed=2)
    assert recorded(ran) == [(2, False), (6, True)]
    assert ran.episodes["test_strict"].assertions == ()


def test_one_that_a_conftest_imported_cannot_be_measured(suite):
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    suite.pytester.makeconftest("import chat_eval")
    ran = suite.run_apart("chat_eval.py")
    ran.result.assert_outcomes(errors=1)
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    ran.result.stdout.fnmatch_lines(
        [
            "*chat_eval.py: its asserts cannot be recorded, for * had imported it before *--eval-strict"
        ]
    )
    (error,) = ran.session.collection_errors
    assert error.nodeid == "chat_eval.py"


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_what_lf_leaves_out_is_not_imported(suite, mode):
    for folder, test in (("a", "raise OSError"), ("b", "assert 1")):
        path = suite.pytester.mkdir(folder) / ("chat_eval.py")
        path.write_text(f"def test_it():\n    {test}\n")
    arguments = [f"--import-mode={mode}", "-p", "cacheprovider"]
    suite.run("a/chat_eval.py", *arguments).result.assert_outcomes(failed=1)
    (suite.pytester.path / "b/chat_eval.py").write_text("import nowhere\ndef test_it(): pass\n")
    ran = suite.run("--eval", "--lf", *arguments)
    ran.result.assert_outcomes(failed=1)
    assert "INTERNALERROR" not in ran.result.stdout.str()
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_syntax_error_is_a_collection_error_with_its_place(suite):
    suite.pytester.makepyfile(chat_eval="def test_a():\n    assert (1 ==\n")
    ran = suite.run("chat_eval.py")
    assert ran.result.ret != 0
    ran.result.stdout.fnmatch_lines(["*chat_eval.py*line 2", "*SyntaxError: '(' was never closed"])


def test_an_assert_at_import_is_a_collection_error(suite):
    suite.pytester.makepyfile(
        chat_eval="""
        def limit(n):
            assert n < 3

        class Settings:
            assert True
            limit(5)
        """
    )
    ran = suite.run("chat_eval.py")
    ran.result.assert_outcomes(errors=1)
    ran.result.stdout.fnmatch_lines(["chat_eval.py:2: in limit", "E   assert 5 < 3"])


HEAD = '''\
# -*- coding: latin-1 -*-
"""Its docstring."""

from __future__ import annotations

def annotated(value: NotThere) -> None: ...

def test_head():
    assert __doc__ == "Its docstring."
    assert annotated.__annotations__ == {"value": "NotThere", "return": "None"}
    assert "\xe4\xf6" == "\xfc", "\xdf"
'''


@pytest.mark.parametrize("assertion_mode", ["rewrite", "plain"])
def test_docstring_future_imports_and_encoding_stay(suite, assertion_mode):
    (suite.pytester.path / "chat_eval.py").write_bytes(HEAD.encode("latin-1"))
    ran = suite.run("chat_eval.py", f"--assert={assertion_mode}", "-W", "error")
    ran.result.assert_outcomes(passed=1)
    found = ran.episodes["test_head"].assertions
    assert [(a.line, a.passed) for a in found] == [(9, True), (10, True), (11, False)]
    assert found[2].name == '"\xe4\xf6" == "\xfc"'
    assert found[2].reason.splitlines()[0] == "\xdf"


@pytest.mark.parametrize("arguments", [["--assert=plain"], []])
def test_without_rewriting_all_are_recorded_and_none_is_explained(suite, arguments):
    suite.pytester.makepyfile(
        chat_eval=f"""
        '''{"" if arguments else "PYTEST_DONT_REWRITE"}'''
        def test_measured():
            n = 1
            assert n == 2
            assert n == 3, "said"
            assert n
        """
    )
    ran = suite.run("chat_eval.py", *arguments)
    assert [(a.passed, a.name, a.reason) for a in ran.episodes["test_measured"].assertions] == [
        (False, "n == 2", None),
        (False, "n == 3", "said"),
        (True, "n", None),
    ]


def test_the_optimizer_takes_no_assert(suite, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    assert recorded(suite.run_apart("chat_eval.py")) == [(2, False), (3, True)]


def test_asserts_may_share_lines_with_anything(suite):
    suite.pytester.makeini("[pytest]\nenable_assertion_pass_hook = true")
    suite.pytester.makeconftest("def pytest_assertion_pass(item, lineno, orig, expl): pass")
    (suite.pytester.path / "chat_eval.py").write_text(
        "def test_one_line():\n"
        "    x = 1; assert (x ==\n 2); assert (1 ==\n 2), 'm'\n"
        "def test_text():\n"
        '    assert """a\nb""" == "a\\nb"; assert 0\n'
        "def test_then():\n"
        "    assert {1,\n2} == {1}; y = (3,\n 4); assert y == 3\n"
    )
    ran = suite.run("chat_eval.py")
    ran.result.assert_outcomes(passed=3)
    assert recorded(ran, "test_one_line") == [(2, False), (3, False)]
    assert recorded(ran, "test_text") == [(6, True), (7, False)]
    assert recorded(ran, "test_then") == [(9, False), (11, False)]


def test_the_hook_of_pytest_for_passed_asserts_is_called_as_ever(suite):
    suite.pytester.makeini("[pytest]\nenable_assertion_pass_hook = true")
    suite.pytester.makeconftest(
        """
        def pytest_assertion_pass(item, lineno, orig, expl):
            print(f"passed: {item.name} {lineno} {orig} | {expl}")
        """
    )
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    ran = suite.run("chat_eval.py", "-s")
    ran.result.stdout.fnmatch_lines(["*passed: test_measured 3 1 == 1 | 1 == 1"])
    assert recorded(ran) == [(2, False), (3, True)]


def test_the_loader_is_gone_with_the_session(suite):
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    before = list(sys.meta_path)
    suite.run("chat_eval.py")
    assert sys.meta_path == before


def test_a_file_outside_of_the_repository_has_no_place(suite, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "chat_eval.py"
    elsewhere.write_text(EVALUATION)
    ran = suite.run(str(elsewhere), f"--rootdir={suite.pytester.path}")
    (episode,) = ran.results.episodes
    assert [(a.file, a.line, a.passed) for a in episode.assertions] == [
        (None, None, False),
        (None, None, True),
    ]
