"""What tests of evaluations share: fixtures of several tests, and what was recorded."""

from __future__ import annotations


def recorded(episode):
    return [(a.line, a.passed, a.name) for a in episode.assertions]


SHARED = """
    import pytest

    @pytest.fixture(scope="module")
    def shared():
        assert True, "passes of it are nobody's"
        yield 1
        assert True

    @pytest.fixture(scope="session")
    def broken():
        assert 0, "broken for all"

    def test_a(shared): assert shared
    def test_b(shared): assert shared
    def test_c(broken): assert 1
    def test_d(broken): assert 1
"""
