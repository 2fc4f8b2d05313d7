"""Public example agents, without a change to their files: tested, recorded, replayed, stopped."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage, calc_price

from tests.frameworks.examples import EXAMPLES, FOLDER, SCRIPTS
from tests.model_server import ModelServer

ROOT = Path(__file__).parents[2]
USAGE = Usage(input_tokens=100, output_tokens=20)
"""Of each answer of the model server."""


@dataclass(frozen=True)
class Played:
    """A run of an example's suite."""

    output: str
    episodes: list[dict[str, Any]]
    served: int

    def find(self, scenario: str) -> dict[str, Any]:
        """Return the episode of a scenario."""
        (found,) = [one for one in self.episodes if one["scenario_id"] == scenario]
        return found

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The agents' turns of all episodes."""
        turns = [turn for one in self.episodes for turn in one["trajectory"]["turns"]]
        return [turn for turn in turns if turn["role"] == "assistant"]


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """The folder with the examples of the OpenAI Agents SDK, which are only in its sources."""
    folder = tmp_path_factory.mktemp("sources")
    for path in Path(sys.prefix, "examples").glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    return next(folder.iterdir(), folder)


@pytest.fixture(scope="session")
def play(server, sources, tmp_path_factory, example):
    """Run the example's suite with a mode of the cassettes."""
    folder = tmp_path_factory.mktemp(example)
    (folder / f"test_{example}.py").write_text((FOLDER / f"{example}.py").read_text("utf-8"))

    def run(mode: str, script: Any) -> Played:
        with ModelServer(script) as scripted:
            environ = os.environ | {
                "ANTHROPIC_BASE_URL": scripted.root_url,
                "OPENAI_API_BASE": scripted.base_url,
                "OPENAI_BASE_URL": scripted.base_url,
                "PYTHONPATH": str(sources),
            }
            options = [f"--episode-report-dir={mode}", f"--cassette={mode}"]
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
            done = subprocess.run(
                command, cwd=folder, env=environ, capture_output=True, text=True, check=False
            )
        results = json.loads((folder / mode / "results.json").read_text("utf-8"))
        return Played(done.stdout, results["episodes"], len(scripted.requests))

    return run


@pytest.fixture(scope="session")
def recorded(play, example):
    """The suite's run with the model server, recorded."""
    return play("record", SCRIPTS[example]())


def test_its_files_are_the_published_ones(example, sources):
    published = EXAMPLES[example]
    if published.environment == "openai-agents":
        (archive,) = Path(sys.prefix, "examples").glob("*.tar.gz")
        lock = (ROOT / "requirements/examples-openai-agents.txt").read_text("utf-8")
        assert hashlib.sha256(archive.read_bytes()).hexdigest() in lock
        assert all((sources / name).is_file() for name in published.files)
        return
    installed = {str(path): path for path in distribution(published.package).files or ()}
    for name in published.files:
        path = installed[name]
        digest = hashlib.sha256(path.read_binary()).digest()
        assert path.hash is not None
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == path.hash.value


def test_its_suite_passes(recorded):
    outcomes = {one["scenario_id"]: one["outcome"] for one in recorded.episodes}
    expected = {name: "failed" if name == "runaway" else "passed" for name in outcomes}
    assert outcomes == expected, recorded.output
    assert len(outcomes) >= 3


def test_every_request_is_counted_with_its_tokens_and_cost(recorded, example):
    tokens = [turn["tokens"] for turn in recorded.turns]
    seen = sum(one["input"] for one in tokens), sum(one["output"] for one in tokens)
    assert seen == (100 * recorded.served, 20 * recorded.served)
    assert recorded.served >= 8
    provider, _, model = EXAMPLES[example].model.partition(":")
    price = calc_price(USAGE, model, provider_id=provider).total_price
    cost = sum(turn["cost_usd"] for turn in recorded.turns)
    assert cost == pytest.approx(float(price) * recorded.served)


def test_every_tool_call_has_its_result(recorded, example):
    calls = [call for turn in recorded.turns for call in turn.get("tool_calls", ())]
    unseen = [call["name"] for call in calls if call.get("result_unseen")]
    assert len(calls) >= 5
    assert unseen == (["cancel_reservation"] if example == "airline" else []), "its tool raises"


def test_a_budget_stops_the_runaway(recorded):
    episode = recorded.find("runaway")
    assert episode["stop_reason"] == "max_turns"
    turns = [turn for turn in episode["trajectory"]["turns"] if turn["role"] == "assistant"]
    assert len(turns) == 3


def test_a_replay_equals_its_recording(recorded, play):
    replayed = play("replay", {})
    assert replayed.served == 0, replayed.output
    assert describe(replayed) == describe(recorded)


def describe(played: Played) -> list[Any]:
    """Return what must be the same in a replay: all but times, the source, and ids of calls."""
    timed = {"latency_ms", "first_byte_ms", "source", "duration_ms", "id", "call_id"}

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items() if key not in timed}
        return [clean(item) for item in value] if isinstance(value, list) else value

    return [
        (one["nodeid"], one["outcome"], one.get("stop_reason"), clean(one["trajectory"]))
        for one in played.episodes
    ]


def test_handoffs_are_agents(recorded, example):
    if example != "customer_service":
        pytest.skip("it has one agent")
    for scenario, name in (("bags", "faq_agent"), ("seat", "seat_booking_agent")):
        first, second = recorded.find(scenario)["trajectory"]["agents"]
        assert (second["name"], second["parent"]) == (name, first["id"])
        assert second["relation"] == "handoff"
