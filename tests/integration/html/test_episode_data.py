"""The words of opened episodes: traffic, agents, steered calls, states, retries."""

from __future__ import annotations

from ci_agent_eval.contract.state import compare_states
from ci_agent_eval.contract.trajectory import ToolCall
from tests.builders import calling, episode, failing, tool_call, turn
from tests.integration.html.browser import page_of

ANSWERED = turn(
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
BROKEN_OFF = turn(
    attachments=[{"media_type": "image/png", "sha256": "ab" * 32, "size_bytes": 1200}, {}],
    error="the answer ended early",
    tool_calls=[{"name": "lookup", "result_unseen": True}, tool_call()],
)
NESTED = [
    {"id": "1"},
    {"id": "1.1", "name": "ask_expert", "parent": "1", "relation": "nested", "call_id": "c1"},
    {"id": "1.2", "name": "\x1b[31m" + "x" * 999, "parent": "1"},
]
TRAFFIC = {
    "requests": 4,
    "refused": 1,
    "failed": 1,
    "unattributed": 2,
    "is_shared": True,
    "unpriced_models": ["my-model"],
    "vendor_priced_models": ["gpt-5"],
}
TURNS_OF_AGENTS = [turn(agent="1"), turn(agent="1.1"), turn(agent="1.2"), turn(agent="1")]
OF_VENDOR = {"requests": 0, "vendor_priced_models": ["gpt-5"]}
SHOP = compare_states("shop", "database", {"a": {"x": 1}}, {"a": {"x": "</script>"}})


def run(kind, duration=None, **fields):
    fields |= {} if duration is None else {"duration_ms": duration}
    return ToolCall(name="bash", result="Run one test.", test_run=kind, **fields).model_dump()


HELD = run("full", 0, steered_by="pytest-full-suite")
EPISODES = [
    episode("answered", trajectory={"turns": [ANSWERED]}, traffic=TRAFFIC),
    episode("broken off", trajectory={"turns": [BROKEN_OFF]}, traffic={"requests": 0}),
    episode(
        "agents", trajectory={"turns": TURNS_OF_AGENTS, "agents": NESTED}, traffic=OF_VENDOR
    ),
    episode("hostile", trajectory={"turns": [turn(requested_model="<b>\u202e")]}),
    calling(HELD, run("targeted", 1200), run("targeted", 800), run("full", 312_000)).model_copy(
        update={"scenario_id": "runs"}
    ),
    calling(HELD, run("targeted")).model_copy(update={"scenario_id": "a run without a time"}),
    calling(HELD, run("targeted", 1200), run("targeted")).model_copy(
        update={"scenario_id": "a run with a time"}
    ),
    episode("states", states=[SHOP]),
    failing("retried"),
    episode("retried", attempt=2),
    episode(
        "tone",
        mode="evaluation",
        assertions=[{"name": "is kind", "passed": True, "score": 0.8}],
    ),
    failing("fails"),
    failing("only informs", gate="advisory"),
]  # fmt: skip


def test_every_episode_reads_as_the_golden_one(show, golden):
    page = show(page_of(EPISODES)).page
    words = []
    for number in range(1, len(EPISODES) + 1):
        row = page.locator(".episode", has=page.locator(f"#episode-{number}"))
        row.locator(".opener").click()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        words.append(" ".join(row.inner_text().split()))
    golden("html/episodes.txt", "\n\n".join(words) + "\n")
    scenarios = page.locator("#scenarios").inner_text()
    assert "Evaluations: 1 of 1 conversation passed" in scenarios
