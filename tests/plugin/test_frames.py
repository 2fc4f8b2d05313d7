"""What a failure shows: the frames of the user, and where there are none the sentence alone."""

from __future__ import annotations

RETURNED = [
    ("None", "@llm_episode: the test returned nothing; return an Episode, *"),
    ("[]", "@llm_episode: the test returned no episode but 'list'; return an Episode, *"),
    ("{'asertions': []}", "the returned episode: unknown key 'asertions'; did you mean *"),
    ("'fine'", "*JSON*"),
]


def test_what_is_no_episode_is_said_in_a_sentence(suite):
    suite.write(
        "from ci_agent_eval import conversation, llm_episode\n\n"
        + "".join(
            f"@llm_episode()\n{kind} test_{kind[0]}{number}():\n    return {value}\n\n"
            for kind in ("def", "async def")
            for number, (value, _) in enumerate(RETURNED)
        )
        + '@conversation("Greets", lambda: None)\ndef test_no_agent(agent): pass\n'
    )
    result = suite.run().result
    for kind in "da":
        for number, (_, said) in enumerate(RETURNED):
            result.stdout.fnmatch_lines([f"*_ test_{kind}{number} _*", said, "*= episodes =*"])
    result.stdout.fnmatch_lines(["the factory made nothing, which is not an agent; *"])
    assert not [line for line in result.outlines if "ci_agent_eval/" in line]


RAISING = """
import asyncio
import pytest
from ci_agent_eval import SimulatedUser, conversation, run_simulation, scenarios

class App:
    def respond(self, message):
        raise ConnectionError("no database")

class Waiting:
    async def respond(self, message):
        await asyncio.sleep(0)
        raise ConnectionError("no database")

USER = SimulatedUser("somebody", fixed_responses=["hi"])

def test_outside():
    run_simulation(App(), USER)

@pytest.mark.episode
def test_plain():
    run_simulation(Waiting(), USER)

@pytest.mark.episode
async def test_async():
    await run_simulation(Waiting(), USER)

@conversation("plain", App)
def test_plain_talk(agent):
    agent.send("hi")

@conversation("waiting", Waiting)
def test_waiting_talk(agent):
    agent.send("hi")

@conversation("async", Waiting)
async def test_async_talk(agent):
    await agent.send("hi")
"""


def test_what_an_app_raises_shows_the_frames_of_test_and_app(suite):
    suite.write(RAISING)
    result = suite.run().result
    result.assert_outcomes(failed=6)
    shown = result.outlines
    assert not [line for line in shown if "ci_agent_eval/" in line or "During handling" in line]
    assert shown.count("E       ConnectionError: no database") == 6
    called = [
        line for line in shown if line.startswith(">") and ("run_sim" in line or ".send" in line)
    ]
    assert len(called) == 6


def test_a_misused_decorator_shows_the_line_of_the_test(suite):
    cases = [
        ('@conversation("a", object)\ndef test_it(): pass', "takes no parameter `agent`; give it"),
        ('@conversation("", object)\ndef test_it(agent): pass', "needs a name and a factory"),
        ("@llm_unit()\nclass TestIt: pass", "decorate a test function or method"),
        ("@llm_episode()\nclass TestIt: pass", "decorate a test function or method"),
    ]
    head = "from ci_agent_eval import conversation, llm_episode, llm_unit\n"
    files = {f"test_{n}": f"{head}{decorated}\n" for n, (decorated, _) in enumerate(cases)}
    suite.pytester.makepyfile(**files)
    result = suite.run().result
    for number, (_, said) in enumerate(cases):
        result.stdout.fnmatch_lines([f"test_{number}.py:2: in <module>", f"E  *: *{said}*"])
    assert not [line for line in result.outlines if "ci_agent_eval/" in line]
