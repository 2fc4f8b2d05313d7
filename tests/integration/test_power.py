"""`agent-eval power`, and the note before a run whose baseline is often red."""

from __future__ import annotations

import json

import pytest

from tests.builders import episode, failing, write_run

PLAN = """\
Plan: 10 required scenarios × 1 iteration, each passes 95.0 % of the time; each must pass 1

An unchanged suite fails its required pass rate in 40.1 % of runs.
At most 5 % of runs would fail with one of:
  20 iterations and min_pass_rate 0.8 (2.5 %)
  2 iterations and min_pass_rate 0.5 (2.5 %)
  suite_min_pass_rate 0.8 (1.2 %)

Smallest drop of all scenarios that is found in 80 % of runs against 1 baseline run:
"""


def write_base(folder, runs, scenarios=10, iterations=5):
    """Write runs in which a third of the scenarios fails once, another third in each run."""
    for run in range(runs):
        episodes = [
            (failing if iteration == 1 and (n + run) % 3 == 0 else episode)(
                f"s{n}", iteration=iteration, duration_ms=run + 1
            )
            for n in range(scenarios)
            for iteration in range(1, iterations + 1)
        ]
        write_run(folder / f"base/run-{run}", *episodes)


def test_a_plan(agent_eval):
    done = agent_eval("power", "--scenarios", "10")
    assert done.returncode == 0
    text, drops = done.stdout[: len(PLAN)], done.stdout[len(PLAN) :].splitlines()
    assert text == PLAN
    assert [line.split(", ", 1)[1] for line in drops] == [
        "where runs do not differ from day to day",
        "where they differ by ±2 points",
    ]


def test_a_plan_uses_the_settings_of_the_gate(agent_eval, tmp_path):
    (tmp_path / "agent-eval.toml").write_text("[gate]\nsuite_min_pass_rate = 0.8\n")
    done = agent_eval("power", "--scenarios", "10", "--format", "json")
    found = json.loads(done.stdout)
    assert found["plan"]["suite_min_pass_rate"] == 0.8
    assert found["false_alarm_chance"] == pytest.approx(0.0115, abs=1e-4)
    assert found["quiet_plans"] == []


def test_a_baseline_is_resampled(agent_eval, tmp_path):
    write_base(tmp_path, 3)
    done = agent_eval("power", "--baseline", "base")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "Baseline: 3 runs of 10 required scenarios; 93.3 % of their iterations pass"
    assert lines[2] == "Of 400 unchanged suites, resampled from these runs:"
    assert lines[3].endswith("miss a required pass rate")
    assert lines[6] == "0 of the 3 runs are red against the others."
    assert lines[7].startswith("At most 5 % would miss min_pass_rate ")
    assert lines[10].startswith("  by 5 points: ")


def test_a_baseline_in_json(agent_eval, tmp_path):
    write_base(tmp_path, 1, scenarios=5)
    done = agent_eval("power", "--baseline", "base", "--format", "json")
    found = json.loads(done.stdout)
    assert (found["runs"], found["scenarios"], found["own_runs_red"]) == (1, 5, 0)
    assert found["by_either"] >= max(found["by_required_rates"], found["by_comparison"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is no baseline: give --baseline, or --scenarios for a plan"),
        (("--baseline", "missing"), "missing: "),
        (
            ("--baseline", "advisory"),
            "advisory: no required scenario with a fixed number of iterations was judged in",
        ),
        (("--scenarios", "0"), "0 is not in the range"),
        (("--scenarios", "3", "--min-pass-rate", "2"), "min-pass-rate"),
    ],
)
def test_wrong_input(agent_eval, tmp_path, arguments, message):
    write_run(tmp_path / "advisory", episode(gate="advisory"))
    done = agent_eval("power", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_whose_baseline_is_often_red_says_so_before_it_starts(agent_eval, tmp_path):
    write_base(tmp_path, 3)
    (tmp_path / "test_s.py").write_text(
        "def test_s(episode):\n    with episode.turn('hi') as turn:\n        turn.reply('ho')\n"
    )
    done = agent_eval("run", "test_s.py", "--baseline", "base")
    note = (
        "note: at the baseline's pass rates an unchanged suite fails in 97% of runs; "
        "`agent-eval power` shows which iterations or required rates would do"
    )
    assert done.stdout.splitlines()[0] == note
    quiet = agent_eval("run", "test_s.py", "--baseline", "base", "--min-pass-rate", "0.4")
    assert "note: at the baseline" not in quiet.stdout
