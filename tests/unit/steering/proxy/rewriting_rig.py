"""Answers of a model for tests of their rewriting, and what becomes of them."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, settings

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.steering.policy.model import Allow, Steer
from ci_agent_eval.steering.proxy.answer_rewriter import AnswerRewriter, EventRewriter
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls, SessionReview
from tests import llm_wire as wire

# Other tests keep the processors busy.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
MESSAGE = "Run fewer tests."
FULL, ONE, LS = wire.bash("pytest"), wire.bash("pytest tests/test_a.py"), wire.bash("ls")
READ = ("read_file", {"path": "a.py"})
APIS = ["chat", "responses", "messages"]
BODIES = {
    "chat": wire.chat_body,
    "responses": wire.response_body,
    "messages": wire.message_body,
}
EVENTS = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}


class Once:
    """Steers a full run of a command that it has not met, in the way of the real handler."""

    def __init__(self, message=MESSAGE):
        self.message = message
        self.asked = []

    def __call__(self, call):
        first = call not in self.asked
        self.asked.append(call)
        command = call.arguments.get("command") if isinstance(call.arguments, dict) else None
        if command == "pytest" and first:
            return Steer(self.message, "the whole suite", "pytest-full-suite", command)
        return Allow("targeted")


def answer_of(api, review=None):
    gate = SessionReview(review or Once(), lambda tool: tool in {"bash", "shell", "local_shell"})
    return AnswerRewriter(api, ReviewedCalls(gate))


def rewritten(api, body, review=None):
    new = answer_of(api, review).rewrite(json.dumps(body).encode())
    return None if new is None else json.loads(new)


def streamed(api, events, review=None, most=1_000_000):
    rewriting = EventRewriter(answer_of(api, review).create_stream(), most)
    parts = [rewriting.feed(event) for event in events]
    return [*parts, rewriting.finish()]


def payloads(parts):
    events = b"".join(parts).split(b"\n\n")
    return [p for e in events if (p := parse_data(e + b"\n\n")) is not None]
