"""A suite for the airline of tau2-bench: its tools, its policy, its tasks and its database."""

import json

import pytest
from langchain.agents import create_agent
from tau2.domains.airline.data_model import FlightDB
from tau2.domains.airline.tools import AirlineTools
from tau2.domains.airline.utils import (
    AIRLINE_DB_PATH,
    AIRLINE_POLICY_PATH,
    AIRLINE_TASK_SET_PATH,
)

TASKS = {task["id"]: task for task in json.loads(AIRLINE_TASK_SET_PATH.read_text("utf-8"))}


@pytest.fixture
def airline():
    """The tools, with a database that the test may change."""
    return AirlineTools(FlightDB.load(str(AIRLINE_DB_PATH)))


@pytest.fixture
def clerk(airline):
    """An agent with all tools of the airline."""
    policy = AIRLINE_POLICY_PATH.read_text("utf-8")
    tools = list(airline.tools.values())
    return create_agent("openai:gpt-5-mini", tools=tools, system_prompt=policy)


@pytest.mark.parametrize("task", ["9", "17", "21", "29", "40"])
@pytest.mark.episode("task", budgets={"cost_usd": 0.05})
async def test_task(aitest_run, airline, clerk, task):
    """The database ends as the task's own actions leave it."""
    result = await aitest_run(clerk, f"Please solve task {task}.")
    assert result.final_response == "Done."

    expected = AirlineTools(FlightDB.load(str(AIRLINE_DB_PATH)))
    for action in TASKS[task]["evaluation_criteria"]["actions"]:
        expected.use_tool(action["name"], **action["arguments"])
    assert airline.get_db_hash() == expected.get_db_hash()


@pytest.mark.episode("unknown reservation", allowed_stops={"agent_error"})
async def test_unknown_reservation(aitest_run, clerk):
    result = await aitest_run(clerk, "Cancel reservation XXXXXX.")
    assert "Reservation XXXXXX not found" in result.error


@pytest.mark.episode("runaway", budgets={"max_turns": 3})
async def test_runaway(aitest_run, clerk):
    await aitest_run(clerk, "List all airports for ever")
