"""A suite whose environment has an older pydantic is told so before anything runs."""

from __future__ import annotations

import pytest

SUITE = "def test_a(episode): episode.check('known', True)"


@pytest.fixture
def old_pydantic(pytester, monkeypatch):
    """Put a pydantic 1 before the real one, as far as anybody looks at it."""
    folder = pytester.mkdir("installed")
    (folder / "pydantic").mkdir()
    (folder / "pydantic/__init__.py").write_text("VERSION = '1.10.26'")
    (folder / "pydantic-1.10.26.dist-info").mkdir()
    (folder / "pydantic-1.10.26.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: pydantic\nVersion: 1.10.26\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize("arguments", [[], ["--episode-report-dir=out"]])
def test_it_is_said_before_anything_runs(old_pydantic, pytester, arguments):
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ci-agent-eval needs pydantic 2 *, and found 1.10.26; *"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_a_project_without_episodes_does_not_care(old_pydantic, pytester):
    pytester.makepyfile("def test_a(): pass")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
