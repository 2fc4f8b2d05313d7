"""What is selected: shards, scenarios, and a check of the full suite."""

from __future__ import annotations

import json

import pytest

from tests.samples import run_sample

# Which episodes run: -k, -x, --lf, repeated paths.


SUITE = """
import pytest

def talk(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns

def test_a(episode): talk(episode)
def test_b(episode): assert False
def test_c(episode): talk(episode)
def test_plain(): pass
"""


ALL = ["test_a", "test_b", "test_c"]
SELECTIONS = [
    # The arguments; how many are selected and deselected, which end, and what the session says
    # of restrictions and paths.
    (["-k", "test_a or plain", "-m", "episode or not x"], 1, 2, ["test_a"],
     ("-k 'test_a or plain'", "-m 'episode or not x'"), ()),
    (["-x"], 3, 0, ["test_a", "test_b"], (), ()),
    (["--maxfail=1", "-k", "not test_a"], 2, 1, ["test_b"], ("-k 'not test_a'",), ()),
    (["test_suite.py::test_c", "test_suite.py::test_a"], 2, 0, ["test_a", "test_c"],
     ("test_suite.py::test_c", "test_suite.py::test_a"), ()),
    (["--deselect", "test_suite.py::test_b"], 2, 1, ["test_a", "test_c"],
     ("--deselect test_suite.py::test_b",), ()),
    (["--ignore", "other", "test_suite.py"], 3, 0, ALL, ("--ignore other",), ("test_suite.py",)),
    (["./", "-v"], 3, 0, ALL, (), (".",)),
    (["--lf"], 1, 0, ["test_b"], ("--lf",), ()),
]  # fmt: skip


def test_selected_and_deselected_tell_what_was_to_run(suite):
    suite.write(SUITE)
    for arguments, selected, deselected, ended, restrictions, paths in SELECTIONS:
        ran = suite.run(*arguments)
        session = ran.session
        found = (session.selected, session.deselected, sorted(ran.episodes))
        assert found == (selected, deselected, ended), arguments
        assert (session.restrictions, session.paths) == (restrictions, paths), arguments
        assert session.state == "finished"
        limits = {"-x", "--maxfail=1"} & {*arguments}
        assert session.stopped == ("stopping after 1 failures" if limits else None)
    assert suite.run("--shard=1/2").session.removed == (), "another shard takes nothing away"
    ran = suite.run("--setup-only", "-k", "test_a")
    assert (ran.session.selected, ran.session.state) == (1, "finished")
    episode = ran.episodes["test_a"]
    assert (episode.outcome, episode.reason) == ("skipped", "the test was set up but not called")


def test_a_stop_at_a_limit_is_no_interruption_of_workers_either(suite):
    suite.write(SUITE + "".join(f"\ndef test_{n}(episode): talk(episode)" for n in range(20)))
    session = suite.run("-x", "-n2").session
    assert (session.state, session.stopped) == ("finished", "stopping after 1 failures")


ITERATED = """
import pytest

@pytest.mark.episode(scenario_id="refund", iterations=3, evidence="none")
def test_refund(episode): pass

@pytest.mark.episode(scenario_id="chat", gate="advisory")
def test_chat(episode): pass

def test_plain(): pass
"""


def test_what_the_ini_file_leaves_out_is_no_restriction(suite):
    suite.write(ITERATED)
    declared = {name: e.iterations for name, e in suite.run().episodes.items()}
    assert declared == {**{f"test_refund[{n}-of-3]": 3 for n in (1, 2, 3)}, "test_chat": 1}
    suite.pytester.makeini("[pytest]\naddopts = -k chat")
    ran = suite.run()
    assert (ran.session.restrictions, ran.session.removed) == ((), ())
    assert sorted(ran.episodes) == ["test_chat"]


REMOVING = """
def pytest_collection_modifyitems(config, items):
    gone = [item for item in items if "3-of-3" in item.name]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone and "refund[2" not in item.name]
    items[:] = [item for item in items if "chat" not in item.name]
"""


def test_a_session_says_what_hooks_took_away_and_which_files_skipped_themselves(suite):
    suite.write(ITERATED, conftest=REMOVING)
    suite.pytester.makepyfile(
        test_other="import pytest\npytest.importorskip('not_there')",
        test_third="import pytest\npytest.skip('no key', allow_module_level=True)",
    )
    session = suite.run("-k", "refund or chat or plain", "-n2").session
    assert session.stopped is None
    assert [one.model_dump() for one in session.removed] == [
        {"scenario_id": "chat", "gate": "advisory", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": None},
        {"scenario_id": "refund", "gate": "required", "iterations": 1, "by": "conftest.py"},
    ]
    assert [(one.file, one.reason) for one in session.collection_skips] == [
        ("test_other.py", "could not import 'not_there': No module named 'not_there'"),
        ("test_third.py", "no key"),
    ]


def test_the_same_test_twice_is_two_iterations(suite):
    suite.write(
        "def test_a(episode): pass",
        conftest="""
            def pytest_collection_modifyitems(items):
                items.append(type(items[0]).from_parent(items[0].parent, name=items[0].name))
        """,
    )
    ran = suite.run()
    assert [(e.nodeid, e.iteration) for e in ran.results.episodes] == [
        ("test_suite.py::test_a", 1),
        ("test_suite.py::test_a", 2),
    ]
    assert ran.session.selected == 2


# `--shard`: every scenario in one shard, all its iterations together, whoever splits.


NEEDS_EVIDENCE = False

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(7))
def test_scenario(episode, n): pass

@pytest.mark.episode(scenario_id="shared")
def test_one(): pass

@pytest.mark.episode(scenario_id="shared")
def test_two(): pass

def test_plain(): pass
"""


# With workers each of them plans its shard for itself; two shards show that they agree.
@pytest.mark.parametrize(
    ("workers", "count"),
    run_sample([("-n0", 12), ("-n0", 3), ("-n2", 2)], {1, 2}),
)
def test_every_test_runs_in_one_shard(suite, workers, count):
    suite.write(TESTS)
    ran, plans, plain = [], set(), 0
    for index in range(1, count + 1):
        shard = suite.run(workers, f"--shard={index}/{count}", "--aitest-iterations=2")
        session = shard.session
        plans.add(session.shard.plan)
        assert (session.shard.index, session.shard.count) == (index, count)
        assert session.deselected == 0
        assert session.selected == len(shard.results.episodes)
        ran += shard.results.episodes
        plain += shard.result.parseoutcomes().get("passed", 0) - len(shard.results.episodes)
        for scenario in {e.scenario_id for e in shard.results.episodes}:
            mine = [e for e in shard.results.episodes if e.scenario_id == scenario]
            assert len(mine) == (4 if scenario == "shared" else 2)
    assert len(plans) == 1
    assert (len(ran), len({e.key for e in ran}), plain) == (18, 18, 1)


def test_what_an_option_leaves_out_is_not_what_a_shard_leaves_out(suite):
    suite.write(TESTS)
    ran = suite.run("--shard=1/2", "-k", "scenario or plain")
    assert ran.session.deselected == 2


def test_a_shard_says_whose_it_is_and_whether_it_has_nothing_to_do(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "42")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    suite.write("def test_only(episode): pass")
    assert suite.run("--shard=2/2").session.shard.empty
    shard = suite.run("--shard=1/2").session.shard
    assert (shard.empty, shard.run, shard.attempt) == (False, "42", 2)


def test_durations_balance_the_shards(suite, pytester):
    suite.write(TESTS)
    episodes = [
        {"scenario_id": f"test_suite.py::test_scenario[{n}]", "duration_ms": 1000 if n == 3 else 1}
        for n in range(7)
    ]
    pytester.path.joinpath("before.json").write_text(json.dumps({"episodes": episodes}))
    first = suite.run("--shard=1/2", "--shard-durations=before.json")
    assert list(first.episodes) == ["test_scenario[3]"]


def test_what_cannot_be_used_is_one_sentence(suite):
    suite.write(TESTS)
    for arguments, said in [
        (["--shard=3/2"], "*--shard: give a shard as INDEX/COUNT, such as 2/7 (got '3/2')*"),
        (["--shard=1/2", "--shard-durations=nowhere"], "*nowhere: No such file*"),
        (
            ["--shard=1/2", "--shard-durations=test_suite.py"],
            "*test_suite.py: it is not a results*",
        ),
    ]:
        ran = suite.run(*arguments)
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
        ran.result.stderr.fnmatch_lines([said])


# `NoFullSuiteRun` reads the rules of `agent-eval-steering.yaml`, as episodes, hook and proxy do.


SETTINGS = "session:\n  shell_tools: {devbox_sh: command}\n"

HEAD = """
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import NoFullSuiteRun
from ci_agent_eval.steering.policy.model import Rules

CALLS = [("bash", "command", "ls"), ("devbox_sh", "command", "pytest -q")]

def record(episode, calls):
    with episode.turn("Test it.") as turn:
        for tool, key, command in calls:
            turn.tool_call(tool, {key: command}, "done")
        turn.reply("It works.")
"""


def run_checks(suite, *checks, settings=SETTINGS):
    """Return each test's outcome and the reason of its only assertion; a check may name its calls."""
    if settings is not None:
        (suite.pytester.path / "agent-eval-steering.yaml").write_text(settings)
    tests = [
        f"async def test_{number}(episode):\n    record(episode, {calls})\n    check({check})\n"
        for number, (check, calls) in enumerate(checks)
    ]
    suite.write("\n".join([HEAD, *tests]))
    episodes = suite.run("--episode-concurrency=2").episodes
    found = [episodes[f"test_{number}"] for number in range(len(checks))]
    return [(e.outcome, e.assertions[0].reason if e.assertions else e.reason) for e in found]


def test_the_tools_of_the_settings_file_are_shells(suite):
    checks = [
        "NoFullSuiteRun()",
        "NoFullSuiteRun(optional=True)",
        # Rules of its own replace the file's, but the file still says which tools are shells.
        "NoFullSuiteRun(rules=Rules(aliases=('make test',)))",
        "NoFullSuiteRun(rules=Rules(shell_tools={'sh9': ('line',)}))",
    ]
    tests = [(check, calls) for check in checks for calls in ("CALLS", "CALLS[1:]")]
    # A tool that the check names itself is read by its own arguments.
    own = "NoFullSuiteRun(rules=Rules(shell_tools={'devbox_sh': ('script',)}))"
    *found, named = run_checks(suite, *tests, (own, "[('devbox_sh', 'script', 'pytest')]"))
    assert named[0] == "failed"
    for test, (outcome, reason) in zip(tests, found, strict=True):
        assert (outcome, reason.partition(" (")[0]) == ("failed", "turn 1: `pytest -q`"), test


def test_rules_of_the_settings_file_hold_unless_the_check_has_its_own(suite):
    settings = "session:\n  pytest_full_suite_aliases: [make test]\n"
    calls = "[('bash', 'command', 'make test')]"
    checks = [("NoFullSuiteRun()", calls), ("NoFullSuiteRun(rules=Rules())", calls)]
    found = run_checks(suite, *checks, settings=settings)
    assert [outcome for outcome, _ in found] == ["failed", "passed"]


def test_without_a_settings_file_the_known_tools_are_shells(suite):
    found = run_checks(suite, ("NoFullSuiteRun()", "CALLS"), settings=None)
    assert found == [("passed", "no call ran it")]


def test_a_wrong_settings_file_fails_the_test_and_is_named(suite):
    checks = ("NoFullSuiteRun()", "CALLS")
    ((outcome, reason),) = run_checks(suite, checks, settings="session:\n  tll: 3\n")
    assert outcome == "error"
    assert "agent-eval-steering.yaml:2: unknown key" in reason
