from __future__ import annotations

import json

from ci_agent_eval.model_traffic.usage_option import UsageEventRemover, add_usage_option
from tests import llm_wire as wire
from tests.tables import each_row


@each_row(
    "asked", [{"stream": False}, {}, {"stream": True, "stream_options": {"include_usage": True}}]
)
def test_other_requests_stay_as_they_are(asked):
    assert add_usage_option(json.dumps(asked).encode()) is None
    assert add_usage_option(b"{") is None


@each_row("size", [1, 7, 10_000])
def test_only_the_event_of_the_usage_is_removed(size):
    events = wire.chat_events(wire.bash("ls"), text="Let me look.")
    body, remover = b"".join(events), UsageEventRemover()
    sent = b"".join(remover.feed(body[at : at + size]) for at in range(0, len(body), size))
    assert sent + remover.finish() == b"".join([*events[:-2], events[-1]])


def test_a_stream_that_breaks_off_keeps_its_last_bytes():
    remover = UsageEventRemover()
    assert remover.feed(b'data: {"choices": [1]}\n\ndata: {"cho') == b'data: {"choices": [1]}\n\n'
    assert remover.finish() == b'data: {"cho'
