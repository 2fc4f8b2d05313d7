"""Any conversation through the proxy: what the provider gets is always a valid one."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.steering.proxy.conversation_rig import (
    APIS,
    FULL,
    LS,
    READ,
    USER,
    Rig,
    Said,
    extend,
    list_commands,
)

# Other tests keep the processors busy.
calmly = settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
every_api = pytest.mark.parametrize("api", APIS)
both_ways = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])

commands = st.lists(
    st.sampled_from([FULL, "pytest -x", "pytest -v", "pytest tests/test_a.py", LS, READ]),
    max_size=3,
)
answers = st.builds(
    Said,
    calls=commands.map(tuple),
    text=st.sampled_from([None, "Let me see.", " Done.\n", "I run the tests."]),
    thinking=st.sampled_from([None, "Hm."]),
)
scripts = st.lists(answers.filter(lambda said: said.calls or said.text), min_size=1, max_size=8)
LAST = [Said(text="The end.")] * 5


def converse(rig, api, change=lambda history: history):
    """Go on until the provider's script has ended; return what reached the client."""
    history, got = [USER], []
    while len(rig.provider.answers) >= len(LAST):
        body = rig.send(change(history))
        got.append(body)
        history = extend(api, history, body)
    return got


@every_api
@both_ways
@calmly
@given(script=scripts)
def test_a_full_run_reaches_the_client_only_after_the_model_was_told(api, is_streamed, script):
    rig = Rig(api, *script, *LAST, is_streamed=is_streamed)
    got = converse(rig, api)
    seen = [command for body in got for command in list_commands(api, body)]
    for command in (FULL, "pytest -x", "pytest -v"):
        asked = [c for said in script for c in said.calls].count(command)
        assert seen.count(command) <= max(0, asked - 1)


def drop_thinking(api, history):
    if api == "messages":
        for message in history:
            if message["role"] == "assistant":
                kept = [b for b in message["content"] if b["type"] != "thinking"]
                message["content"] = kept
        return [message for message in history if message["content"]]
    return [item for item in history if item.get("type") != "reasoning"]


def strip_texts(api, history):
    for message in history:
        if isinstance(message.get("content"), str):
            message["content"] = message["content"].strip()
        for part in message.get("content") or []:
            if isinstance(part, dict) and "text" in part:
                part["text"] = part["text"].strip()
    return history


def drop_ids(_api, history):
    for item in history:
        if str(item.get("id")).startswith(("rs_", "msg_", "fc_")):
            del item["id"]
    return history


def mark_for_cache(api, history):
    if api == "messages" and isinstance(history[-1]["content"], list):
        history[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return history


def join_texts(api, history):
    """Send the texts of an answer as one, as clients of several APIs do."""
    for message in history if api == "messages" else []:
        if message["role"] == "assistant":
            texts = [b["text"] for b in message["content"] if b["type"] == "text"]
            others = [b for b in message["content"] if b["type"] != "text"]
            joined = [{"type": "text", "text": "".join(texts)}] if texts else []
            message["content"] = [*joined, *others]
    return history


def forget_the_beginning(api, history):
    """Send the last exchanges only, as after a compaction."""
    starts = [
        at for at, m in enumerate(history) if m.get("role") == "user" and m["content"] == "Go on."
    ]
    return [USER, *history[starts[-1] + 1 :]] if len(starts) > 1 else history


CHANGES = [
    drop_thinking,
    strip_texts,
    drop_ids,
    mark_for_cache,
    join_texts,
    forget_the_beginning,
]


@every_api
@both_ways
@calmly
@given(script=scripts, changes=st.lists(st.sampled_from(CHANGES), unique=True))
def test_any_history_of_the_client_stays_a_valid_conversation(api, is_streamed, script, changes):
    def change(history):
        history = copy.deepcopy(history)
        for each in changes:
            history = each(api, history)
        return history

    rig = Rig(api, *script, *LAST, is_streamed=is_streamed)
    converse(rig, api, change)
