"""`async def` episodes run without a further plugin; other plugins keep what is theirs."""

from __future__ import annotations


def test_tests_of_others_are_left_to_them_and_episodes_need_no_pytest_asyncio(suite):
    # No plugin is here to run those of others, so pytest itself says that nobody did.
    suite.write("""
        import pytest

        async def test_plain(): pass

        @pytest.mark.anyio
        async def test_anyio(episode): pass

        @pytest.mark.trio
        async def test_trio(episode): pass

        @pytest.mark.asyncio
        @pytest.mark.episode(evidence="none")
        async def test_asyncio(episode): pass
    """)
    ran = suite.run("-W", "ignore", "-p", "no:anyio")
    ran.result.assert_outcomes(failed=3, passed=1)
    said = "async def functions are not natively supported"
    assert ran.result.stdout.str().count(said) >= 3
    assert {name: e.outcome for name, e in ran.episodes.items()} == {
        "test_anyio": "failed",
        "test_trio": "failed",
        "test_asyncio": "passed",
    }
