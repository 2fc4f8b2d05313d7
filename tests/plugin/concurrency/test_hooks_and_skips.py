"""What a hook may skip runs alone, unless it is let; what is not to run is never started."""

from __future__ import annotations

from tests.plugin.conftest import OPTING_OUT, SCRIPTED_CLOCK

HOOKED = (
    SCRIPTED_CLOCK
    + """
def pytest_runtest_setup(item):
    if "hooked" in item.name:
        pytest.skip("not on this machine")
"""
)


def test_a_hook_that_may_skip_it_is_named(suite):
    suite.write(
        """
        import pytest
        from meeting import Crowd, let_others_work

        crowd = Crowd()

        @pytest.mark.parametrize("number", range(3))
        async def test_alone(episode, number):
            with crowd.among():
                await let_others_work()
                assert crowd.most == 1

        async def test_hooked(episode): raise AssertionError
        """,
        conftest=HOOKED,
    )
    ran = suite.run("--episode-concurrency=4")
    ran.result.assert_outcomes(passed=3, skipped=1)
    ran.result.stdout.fnmatch_lines(
        ["note: 4 of the episodes run alone (4: conftest has a hook that may skip it or run it)"]
    )


def test_a_hook_of_another_folder_has_no_say(suite):
    test = "from meeting import meet\nasync def test_meet(episode): await meet(3)"
    suite.pytester.makeconftest("import sys\nsys.path.insert(0, '.')" + OPTING_OUT)
    for folder, names in (("one", "ab"), ("two", "c"), ("with_hook", "d")):
        made = suite.pytester.mkdir(folder)
        for name in names:
            (made / f"test_{name}.py").write_text(test)
    (made / "conftest.py").write_text(HOOKED)
    (made / "test_d.py").write_text("async def test_alone(episode): pass")
    ran = suite.run("--episode-concurrency=3")
    ran.result.assert_outcomes(passed=4)
    ran.result.stdout.fnmatch_lines(["note: 1 of the episodes run alone (1: *conftest* hook *)"])


OVERRIDDEN = """
import asyncio
import pytest
from meeting import meet, until

told = []
begun = asyncio.Event()

@pytest.fixture
def desk(request, monkeypatch):
    told.append("up " + request.node.name)
    yield
    told.append("down " + request.node.name)

@pytest.mark.episode(alone=False)
async def test_first(episode, desk):
    await until(begun)

@pytest.mark.episode(alone=False)
async def test_hooked(episode, desk):
    begun.set()
    try:
        with episode.turn("Hello") as turn:
            turn.reply("Hi")
        await asyncio.Event().wait()
    finally:
        told.append("cancelled")

def test_told():
    first = ["up test_first", "up test_hooked", "down test_first"]
    assert told == [*first, "cancelled", "down test_hooked"]
"""


def test_one_that_is_let_and_skipped_on_its_turn_is_cancelled(suite):
    suite.write(OVERRIDDEN, conftest=HOOKED)
    ran = suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2, skipped=1)
    skipped = ran.episodes["test_hooked"]
    assert (skipped.outcome, skipped.reason) == ("skipped", "not on this machine")
    assert "alone" not in ran.result.stdout.str()


NOT_RUN = """
import pytest

begun = []

@pytest.fixture
def desk(): begun.append("desk")

async def test_first(episode): pass

@pytest.mark.skip(reason="later")
async def test_a(episode, desk): begun.append("a")

@pytest.mark.skipif(True, reason="later")
async def test_b(episode, desk): begun.append("b")

@pytest.mark.skipif("sys.version_info > (3,)", reason="later")
async def test_c(episode, desk): begun.append("c")

@pytest.mark.xfail(run=False)
async def test_d(episode, desk): begun.append("d")

@pytest.mark.skip
class TestDesk:
    async def test_e(self, episode, desk): begun.append("e")

@pytest.mark.skipif("nonsense", reason="later")
async def test_f(episode, desk): begun.append("f")

async def test_last(episode):
    assert begun == []
"""


def test_what_is_not_to_run_is_never_started(suite):
    suite.write(NOT_RUN)
    seen = set()
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}")
        ran.result.assert_outcomes(passed=2, skipped=4, xfailed=1, errors=1)
        seen.add((ran.folder / "results.json").read_bytes())
    assert len(seen) == 1


def test_an_expected_failure_runs_beside_others(suite):
    suite.write("""
        import pytest
        from meeting import meet

        @pytest.mark.xfail(reason="known", strict=True)
        async def test_a(episode):
            await meet(3)
            assert False

        @pytest.mark.xfail(False, reason="no", run=False)
        async def test_b(episode): await meet(3)

        @pytest.mark.skipif(False, reason="no")
        async def test_c(episode): await meet(3)
    """)
    suite.run("--episode-concurrency=3").result.assert_outcomes(passed=2, xfailed=1)
    ran = suite.run("--episode-concurrency=3", "--runxfail")
    ran.result.assert_outcomes(passed=2, failed=1)


def test_what_tearing_it_down_raises_is_told_though_it_is_the_last_one(suite):
    text = OVERRIDDEN.partition("def test_told")[0]
    text = text.replace(
        '    told.append("down " + request.node.name)\n',
        '    if "hooked" in request.node.name: raise OSError("jammed")\n',
    )
    suite.write(text, conftest=HOOKED)
    ran = suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=1, skipped=1, errors=1)
    ran.result.stdout.fnmatch_lines(["ERROR *test_hooked*jammed*"])
