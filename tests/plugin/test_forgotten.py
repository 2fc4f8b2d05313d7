"""An episode whose record is on disk takes no more memory than its reports."""

from __future__ import annotations

import json

import pytest

CONFTEST = """
    import gc, pytest
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.recording import EpisodeRecorder

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(session):
        gc.collect()
        kept = [o for o in gc.get_objects() if isinstance(o, (Episode, EpisodeRecorder))]
        with open("kept.json", "w") as file:
            file.write(str(len(kept)))
"""

TESTS = """
    import pytest

    @pytest.mark.parametrize("number", range(10))
    {kind}def test_it(number, episode):
        with episode.turn("hello") as turn:
            turn.reply("hi")
        assert number != 3
        if number == 4:
            pytest.skip("not today")
        if number == 5:
            raise RuntimeError("broken")
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [("", []), ("async ", ["--episode-report-dir=report", "--episode-concurrency=5"])],
)
def test_episodes_are_let_go_of_after_their_teardown(pytester, kind, options):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS.format(kind=kind))
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=7, failed=2, skipped=1)
    # The latest one is known by what was redacted of it.
    assert json.loads((pytester.path / "kept.json").read_text()) <= 4
