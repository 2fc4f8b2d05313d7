"""`--shard`: every scenario in one shard, all its iterations together, whoever splits."""

from __future__ import annotations

import json

import pytest

from tests.samples import run_sample

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
