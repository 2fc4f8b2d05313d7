"""--episode-again: some scenarios again, as often as the file says."""

from __future__ import annotations

import json

import pytest

TESTS = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=9, min_passes=9)
def test_refund(episode): pass

@pytest.mark.episode(iterations="auto")
def test_auto(episode): pass

def test_once(episode): pass

def test_other(episode): pass

def test_plain(): pass
"""


@pytest.fixture
def again(suite, tmp_path):
    def run(other=None, *arguments, **iterations):
        file = tmp_path / "again.json"
        names = {name.replace("__", "::"): n for name, n in iterations.items()}
        file.write_text(json.dumps({"iterations": names, "other_checkout": other}))
        return suite.run(f"--episode-again={file}", *arguments)

    return run


def test_only_the_named_scenarios_run_as_often_as_asked(suite, again):
    suite.write(TESTS)
    ran = again(None, refund=3, **{"test_suite.py::test_auto": 2, "test_suite.py::test_once": 1})
    found = sorted((e.scenario_id, e.iteration) for e in ran.results.episodes)
    assert found == [
        ("refund", 1), ("refund", 2), ("refund", 3),
        ("test_suite.py::test_auto", 1), ("test_suite.py::test_auto", 2),
        ("test_suite.py::test_once", 1),
    ]  # fmt: skip
    assert ran.session.selected == 6


def test_code_of_the_other_checkout_is_an_error_from_the_first_iteration_on(
    suite, again, tmp_path_factory, monkeypatch
):
    other = tmp_path_factory.mktemp("other")
    (other / "agent_of_head.py").write_text("")
    monkeypatch.syspath_prepend(str(other))
    suite.write("import agent_of_head\n" + TESTS)
    ran = again(str(other), refund=2)
    assert [e.outcome for e in ran.results.episodes] == ["error", "error"]
    assert "agent_of_head comes from the other checkout" in ran.results.episodes[0].reason
