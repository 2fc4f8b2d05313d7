"""`async def` episodes run without a further plugin; other plugins keep what is theirs."""

from __future__ import annotations

import pytest


def test_async_tests_that_are_no_episodes_are_left_to_pytest(suite):
    suite.write("async def test_plain(): pass")
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    ran.result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


@pytest.mark.parametrize("marker", ["anyio", "trio"])
def test_a_test_another_plugin_claims_is_left_to_it(suite, marker):
    # No such plugin is here to run it, so pytest itself says that nobody did.
    suite.write(f"""
        import pytest

        @pytest.mark.{marker}
        async def test_one(episode): pass
    """)
    ran = suite.run("-W", "ignore", "-p", "no:anyio")
    ran.result.assert_outcomes(failed=1)
    ran.result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])
    assert ran.episodes["test_one"].outcome == "failed"


def test_the_marker_of_pytest_asyncio_needs_no_pytest_asyncio(suite):
    suite.write("""
        import pytest

        @pytest.mark.asyncio
        @pytest.mark.episode(evidence="none")
        async def test_one(episode): pass
    """)
    ran = suite.run("-W", "ignore")
    assert ran.episodes["test_one"].outcome == "passed"
