"""Any conversation through the proxy: what the provider gets is always a valid one."""

from __future__ import annotations

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


def converse(rig, api):
    """Go on until the provider's script has ended; return what reached the client."""
    history, got = [USER], []
    while len(rig.provider.answers) >= len(LAST):
        body = rig.send(history)
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
