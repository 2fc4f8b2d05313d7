"""The fixture `episode`, its marker, and the frames that a failure shows."""

from __future__ import annotations

import pytest

from tests.plugin.test_iterations import FORMS as ITERATIONS

# The fixtures `episode` and `episode_clock`.


OWN = """
import pytest

@pytest.fixture
def episode():
    return "S01E01"

def test_series(episode):
    assert episode == "S01E01"
"""
MARKED = """
import pytest

@pytest.fixture
def episode():
    raise RuntimeError("nobody asked for it")

@pytest.mark.episode(evidence="none")
def test_marked(): pass
"""


def test_a_fixture_of_ones_own_is_not_ours(suite):
    suite.pytester.makepyfile(test_own=OWN, test_marked=MARKED)
    ran = suite.run()
    ran.result.assert_outcomes(passed=2)
    assert {name: e.outcome for name, e in ran.episodes.items()} == {"test_marked": "passed"}
    assert ran.properties["test_series"] == {}


def test_it_is_extended_asked_for_by_others_or_late_and_timed_by_the_clock(suite):
    suite.write("""
        import pytest

        @pytest.fixture
        def desk(episode):
            episode.check("ready", True)

        @pytest.mark.episode(evidence="none")
        def test_through_others(desk): pass

        def test_late(request):
            request.getfixturevalue("episode").check("late", False)

        def test_timed(episode):
            with episode.turn("Hello") as turn:
                turn.reply("Hi")
            episode.check("greets", True)

        class TestExtended:
            @pytest.fixture
            def episode(self, episode):
                episode.agent = "desk"
                return episode

            @pytest.mark.episode(evidence="none")
            def test_own(self, episode): pass
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=3, failed=1)
    episodes = ran.episodes
    assert episodes["test_through_others"].assertions[0].name == "ready"
    assert episodes["test_late"].outcome == "failed"
    assert episodes["test_own"].agent == "desk"
    timed = episodes["test_timed"]
    assert timed.trajectory is not None
    assert (timed.trajectory.latencies_ms, timed.duration_ms) == ((100,), 300)


def test_a_check_stands_where_the_test_made_it(suite, pytester):
    pytester.mkdir(".git")
    folder = pytester.mkdir("evals")
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    folder.joinpath("test_deep.py").write_text(
        "def expect(episode):\n    episode.check('a', True)\n\ndef test_one(episode):\n    expect(episode)\n"
    )
    ran = suite.run("--rootdir=evals", "evals")
    episode = ran.episodes["test_one"]
    # Relative to the repository, which is what an annotation on a pull request needs.
    assert episode.nodeid == "test_deep.py::test_one"
    assert (episode.file, episode.line) == ("evals/test_deep.py", 4)
    assert (episode.assertions[0].file, episode.assertions[0].line) == ("evals/test_deep.py", 2)


# The marker `episode`: what it says, and what happens when it says nonsense.


MARKED_MARKER = """
import pytest

@pytest.mark.episode(
    scenario_id="refund", budgets={"max_turns": 5, "latency_ms": {"p95": None, "limit": 9}},
    gate="advisory", min_pass_rate=0.5, agent="desk", model="m-1", metadata={"tier": 1},
)
def test_all(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", latency_ms=3)

@pytest.mark.episode("by position", was="old")
def test_position(): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.episode)])
def test_bare(n): pass

@pytest.mark.episode("listed", was=["old"])
def test_listed(): pass

@pytest.mark.episode(budgets={"tool_calls": 3}, evidence="none")
def test_unmeasured(): pass

@pytest.mark.episode(agent="desk", budgets={"custom": {"emails": {"limit": 1, "used": 1}}})
class TestDesk:
    pytestmark = pytest.mark.episode(budgets={"max_turns": 9}, gate="advisory")

    @pytest.mark.parametrize("tier", ["gold", "basic"])
    def test_tiers(self, episode, tier): pass

    @pytest.mark.episode(gate="required", budgets={"max_turns": 5})
    def test_nearest(self, episode):
        with episode.turn("Hello"): pass

class Desk: pass

@pytest.mark.episode("shared")
@pytest.mark.parametrize("tier", ["gold"])
@pytest.mark.parametrize("case", [{"ask": "a"}, Desk(), pytest.param([1], id="named")])
def test_shared(case, tier): pass

@pytest.mark.parametrize("case", [{"ask": "a"}])
def test_own(episode, case): pass

@pytest.mark.episode("cases", iterations=2, min_passes=4, evidence="none")
@pytest.mark.parametrize("case", [1, 2])
def test_case(case): pass

@pytest.mark.episode("group", iterations=2, min_passes=4, evidence="none")
class TestGroup:
    def test_two(self): pass
    def test_three(self): pass
"""


def test_it_describes_the_episode(suite):
    suite.write(MARKED_MARKER)
    ran = suite.run("--strict-markers")
    episodes = ran.episodes
    assert len(episodes) == 20
    episode = episodes["test_all"]
    assert (episode.scenario_id, episode.nodeid) == ("refund", "test_suite.py::test_all")
    assert (episode.gate, episode.min_pass_rate) == ("advisory", 0.5)
    assert (episode.agent, episode.model, episode.metadata) == ("desk", "m-1", {"tier": 1})
    assert {name: budget.used for name, budget in episode.budgets.iter_named()} == {
        "max_turns": 1,
        "latency_ms": 3,
    }
    position = episodes["test_position"]
    assert (position.scenario_id, position.was) == ("by position", ("old",))
    assert episodes["test_listed"].was == ("old",)
    assert (episodes["test_bare[2]"].duration_ms, "test_bare[1]" in episodes) == (100, False)
    tiers = episodes["test_tiers[gold]"]
    assert tiers.scenario_id == "test_suite.py::TestDesk::test_tiers[gold]"
    # Markers of the class and the test are read together.
    nearest = episodes["test_nearest"]
    assert (nearest.agent, tiers.gate, nearest.gate) == ("desk", "advisory", "required")
    assert {n: b.limit for n, b in nearest.budgets.iter_named()} == {"max_turns": 5, "emails": 1}
    # A hard budget that nothing measured is not kept.
    ran.result.stdout.fnmatch_lines(
        [
            "episode 'test_suite.py::test_unmeasured': budget tool_calls: not measured, limit 3 (hard)"
        ]
    )
    # Cases of one scenario are known by their ids or values.
    shared = {
        e.case for name, e in episodes.items() if name.startswith(("test_shared", "test_own"))
    }
    assert shared == {"[case={'ask': 'a'}-gold]", "[case1-gold]", "[named-gold]", None}
    # Iterations of several tests may reach what those of one cannot.
    counts = [e.outcome for e in ran.results.episodes if e.scenario_id in {"cases", "group"}]
    assert counts == ["passed"] * 8


NONSENSE = [
    ("scenaro_id='x'", "unknown key 'scenaro_id'; did you mean 'scenario_id'?"),
    ("budgets={'tool_cals': 4}", "unknown key 'tool_cals'; did you mean 'tool_calls'?"),
    ("budgets={'tool_calls': -1}", "budgets.tool_calls.limit: *greater than or equal to 0*"),
    ("budgets={'tool_calls': float('nan')}", "budgets.tool_calls.limit: *finite number*"),
    ("budgets=7", "budgets: *"),
    ("gate='blocking'", "gate: *'required' or 'advisory'*"),
    ("min_pass_rate=2", "min_pass_rate: *"),
    ("min_pass_rate='0'", "min_pass_rate: *number*"),
    ("min_pass_rate=False", "min_pass_rate: *not true or false*"),
    ("min_pass_rate=True", "min_pass_rate: *not true or false*"),
    ("min_passes=True", "min_passes: *integer*"),
    ("iterations=3, min_passes=9", "min_passes 9 of 3 iterations can never be reached"),
    ("'a', iterations=1, min_passes=2", "min_passes 2 of 1 iterations can never be reached"),
    ("scenario_id=''", "scenario_id: *"),
    ("'a', 'b'", "give everything after `scenario_id` by name"),
    ("'a', scenario_id='b'", "`scenario_id` is given twice: without a name, and by it; *"),
    ("5", "scenario_id: the argument without a name must be a text (got 5)"),
    ("['a']", "scenario_id: the argument without a name must be a text (got ['a'])"),
    ("None", "scenario_id: the argument without a name must be a text (got None)"),
    ("' '", "scenario_id: the argument without a name must be a text (got ' ')"),
    ("'refund', was=[7]", "episode: was.0: *string (got 7)"),
    *(
        (f"iterations={given}", f"iterations: must be {ITERATIONS} (got {given})")
        for given in ("0", "True", "'3'", "2.0")
    ),
    ("evidence=False", "evidence: Input should be 'required' or 'none'*"),
    *((f"alone={given}", "alone: *") for given in ("'no'", "1", "[]")),
    ("iterations='auto', min_passes=2", "min_passes needs a fixed number of iterations; give *"),
    ("gates='required'", "unknown key 'gates'; did you mean 'gate'?"),
]


def test_nonsense_is_a_collection_error_that_names_test_and_key(suite):
    files = {
        f"test_{number}": f"import pytest\n\n@pytest.mark.episode({given})\ndef test_one(): pass\n"
        for number, (given, _) in enumerate(NONSENSE)
    }
    suite.pytester.makepyfile(**files)
    ran = suite.run()
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    errors = {error.nodeid: error.message for error in ran.session.collection_errors}
    for number, (_, sentence) in enumerate(NONSENSE):
        start = f"test_{number}.py::test_one: @pytest.mark.episode: "
        assert errors[f"test_{number}.py"].startswith(start)
        ran.result.stdout.fnmatch_lines([f"*{start}*{sentence.replace('[', '[[]')}*"])


def test_nonsense_that_comes_after_collection_is_an_error_of_the_test(suite):
    suite.write(
        "def test_one(episode): pass",
        conftest="""
            import pytest

            def pytest_collection_modifyitems(items):
                items[0].add_marker(pytest.mark.episode(gates="required"))
        """,
    )
    ran = suite.run()
    ran.result.assert_outcomes(errors=1)
    episode = ran.episodes["test_one"]
    assert episode.outcome == "error"
    assert "unknown key 'gates'" in (episode.reason or "")


def test_a_project_with_a_marker_of_this_name_keeps_it(suite, pytester):
    pytester.makeini("[pytest]\nmarkers =\n    episode(number): which episode of the series\n")
    suite.write("""
        import pytest

        @pytest.mark.episode(3, title="The One")
        def test_series(): pass
    """)
    ran = suite.run("--strict-markers")
    ran.result.assert_outcomes(passed=1)
    assert ran.results.episodes == ()


def test_an_episode_with_the_project_s_own_marker_is_told_that_it_is_ignored(suite, pytester):
    pytester.makeini("[pytest]\nmarkers =\n    episode: one of our episodes\n")
    suite.write("""
        import pytest

        @pytest.mark.episode("greeting", gate="advisory")
        def test_one(episode):
            with episode.turn("Hello") as turn: turn.reply("Hi")
            assert turn
    """)
    ran = suite.run()
    ran.result.stdout.fnmatch_lines(
        ["note: the marker `episode` of test_suite.py::test_one is ignored, for *; take it out *"]
    )
    (episode,) = ran.results.episodes
    assert (episode.scenario_id, episode.gate) == ("test_suite.py::test_one", "required")


# What a failure shows: the frames of the user, and where there are none the sentence alone.


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
