"""The data of model traffic in an episode's conversation: models, agents, files, settings."""

from __future__ import annotations

from tests.builders import episode, tool_call, turn
from tests.unit.render.html.rendered_page import data, page


def row_of(turns, agents=(), **fields):
    trajectory = {"turns": [{"role": "user", "content": "hello"}, *turns], "agents": agents}
    (row,) = data(page(episode(trajectory=trajectory, **fields)), "episode")
    return row


def test_a_turn_shows_models_finish_reason_times_tokens_and_settings():
    shown = row_of(
        [
            turn(
                source="live",
                latency_ms=1500,
                first_byte_ms=300,
                tokens={"input": 90, "output": 60, "cached": 50, "reasoning": 40},
                requested_model="gpt-5",
                response_model="gpt-5-2026",
                finish_reason="stop",
                settings={"top_p": 0.5, "temperature": 0},
                typed_output={"stars": 4},
            )
        ]
    )["turns"][1]
    assert shown["notes"] == ["live", "1,500 ms", "90 (50 cached) tokens in, 60 (40 reasoning) out"]
    assert shown["details"] == [
        ["Model", "gpt-5-2026 (requested: gpt-5)"],
        ["Finish reason", "stop"],
        ["First token", "300 ms"],
        ["Settings", "temperature 0, top_p 0.5"],
        ["Typed output", '{"stars": 4}'],
    ]


def test_nested_agents_are_a_tree_of_turns():
    agents = [
        {"id": "1"},
        {"id": "1.1", "name": "ask_expert", "parent": "1", "relation": "nested", "call_id": "c1"},
    ]
    row = row_of([turn(agent="1"), turn(agent="1.1"), turn(agent="1")], agents)
    assert [(one.get("agent"), one.get("depth")) for one in row["turns"]] == [
        (None, None),
        ("1", 0),
        ("1.1 ask_expert (nested)", 1),
        ("1", 0),
    ]


def test_attachments_incomplete_answers_and_unseen_results_are_shown():
    files = [{"media_type": "image/png", "sha256": "ab" * 32, "size_bytes": 1200}, {"sha256": None}]
    shown = row_of(
        [
            turn(
                attachments=files,
                error="the answer ended early",
                tool_calls=[{"name": "lookup", "result_unseen": True}, tool_call()],
            )
        ]
    )["turns"][1]
    assert shown["files"] == ["image/png, 1,200 bytes, sha256 " + "ab" * 32, "file"]
    assert shown["error"] == "the answer ended early"
    assert [call.get("unseen") for call in shown["calls"]] == [True, None]


def test_the_numbers_of_the_traffic_are_in_the_episode():
    traffic = {
        "requests": 4,
        "refused": 1,
        "failed": 1,
        "unattributed": 2,
        "is_shared": True,
        "unpriced_models": ["my-model"],
        "vendor_priced_models": ["gpt-5"],
    }
    assert row_of([turn()], traffic=traffic)["traffic"] == [
        "4 requests",
        "1 refused",
        "1 failed",
        "2 not attributed to an episode",
        "with requests from outside the test's context",
        "cost unknown: no price of my-model",
        "priced as the API's vendor: gpt-5",
    ]
    assert row_of([turn()], traffic={"requests": 0})["traffic"] == ["no model traffic seen"]
    own = {"requests": 0, "vendor_priced_models": ["gpt-5"]}
    assert row_of([turn()], traffic=own)["traffic"] == ["priced as the API's vendor: gpt-5"]
    assert "traffic" not in row_of([turn()])


def test_names_from_the_traffic_are_cut_and_made_visible():
    agents = [{"id": "1"}, {"id": "1.1", "name": "\x1b[31m" + "x" * 999, "parent": "1"}]
    row = row_of([turn(agent="1.1", requested_model="<b>\u202e")], agents)
    assert len(row["turns"][1]["agent"]) <= 340
    assert "\x1b" not in row["turns"][1]["agent"]
    assert "\u202e" not in row["turns"][1]["details"][0][1]
