"""An agent that mends a bug, and what it takes to test the mend."""

import pytest
from agent import coding_agent
from workshop import Workshop

from ci_agent_eval import check
from ci_agent_eval.checks import NoFullSuiteRun


@pytest.fixture
def workshop(tmp_path):
    return Workshop(tmp_path)


def note_saved(episode, workshop):
    """Put beside each other, in the report, what the agent ran and what there was to run."""
    tests, seconds = workshop.measure_whole_suite()
    saved = tests - workshop.tests
    episode.metadata["tests_of_the_suite"] = tests
    episode.metadata["tests_run_by_the_agent"] = workshop.tests
    episode.metadata["seconds_of_the_suite"] = round(seconds, 2)
    episode.metadata["seconds_in_the_agent_s_shell"] = round(workshop.seconds, 2)
    episode.score("tests saved", saved / tests, f"it ran {workshop.tests} of {tests} tests")


@pytest.mark.episode(scenario_id="mends_the_discount", budgets={"max_turns": 4, "tool_calls": 3})
async def test_mends_the_discount(aitest_run, episode, workshop):
    result = await aitest_run(coding_agent(workshop), "Discounts are added. Mend and test it.")
    assert "1 passed" in result.final_response
    assert [call.steered_by for call in result.tool_calls_for("bash")] == [
        "pytest-full-suite",  # `pytest -q`, which never ran
        None,  # the one test that matters
    ]
    check(NoFullSuiteRun())
    note_saved(episode, workshop)


@pytest.mark.episode(scenario_id="needs_the_whole_suite", budgets={"tool_calls": 3})
async def test_who_insists_may_run_it(aitest_run, episode, workshop):
    task = "Discounts are added. Mend it, and test it with the whole suite: we release today."
    result = await aitest_run(coding_agent(workshop), task)
    steered = [call.steered_by is not None for call in result.tool_calls_for("bash")]
    assert steered == [True, False]
    assert "295 passed" in result.final_response
    note_saved(episode, workshop)
