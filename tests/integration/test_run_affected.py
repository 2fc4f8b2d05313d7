"""`agent-eval run --affected`: earlier results count in the run's report and in a later one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.processes import run_agent_eval
from tests.repositories import TestRepository

TEST = """
import pytest
from {name} import answer

@pytest.mark.episode(scenario_id="{name}")
def test_{name}(episode):
    with episode.turn("Hello") as turn:
        turn.reply(answer())
    episode.check("polite", True)
"""
ANSWER = 'def answer():\n    return "{text}"\n'
NAMES = ("greet", "refund")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A repository whose change reaches one of two scenarios, after a run of each side."""
    root = tmp_path_factory.mktemp("affected")
    repository = TestRepository(root / "work")
    for name in NAMES:
        repository.write(f"{name}.py", ANSWER.format(text=name))
        repository.write(f"test_{name}.py", TEST.format(name=name))
    repository.write("pytest.ini", "[pytest]\npythonpath = .\n")
    repository.commit()
    before = run_agent_eval("run", ".", "--report-dir", "../base", cwd=repository.folder)
    assert before.returncode == 0, before.stdout
    repository.edit("greet.py", "greet", "hello")
    repository.commit()
    words = ("run", ".", "--affected", "--baseline", "../base", "--report-dir", "../head")
    return root, run_agent_eval(*words, cwd=repository.folder)


@pytest.fixture
def runs(ran, tmp_path):
    """A copy of the folders of both runs, beside the repository's own."""
    root, _ = ran
    for name in ("work", "base", "head"):
        shutil.copytree(root / name, tmp_path / name)
    return tmp_path


def report(root: Path):
    words = ("report", "--results", "../head", "--baseline", "../base", "--report-dir", "../out")
    done = run_agent_eval(*words, cwd=root / "work")
    verdict = json.loads((root / "out/verdict.json").read_text())
    return done, verdict


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_run_reports_the_earlier_result(ran):
    root, done = ran
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "note: 1 unchanged scenario: earlier results count" in said
    assert "1 of 2 scenarios ran; 1 carried over from " in said
    assert "today · saved 1 episode" in said
    results = json.loads((root / "head/results.json").read_text())
    greet, refund = results["episodes"]
    base = json.loads((root / "base/dependencies.json").read_text())
    assert "carried_over" not in greet
    assert refund["carried_over"] == {
        "commit": base["commit"],
        "recorded_at": base["recorded_at"],
    }


def test_a_later_report_says_the_same(runs):
    done, verdict = report(runs)
    assert done.returncode == 0, done.stdout
    assert verdict["counts"]["carried_over"] == {"episodes": 1, "scenarios": 1}
    assert verdict["verdict"]["reasons"] == []


FORGERIES = {
    "outcome": ("results.json", '"scenario_id":"refund"', '"reason":"x","scenario_id":"refund"'),
    "commit": ("results.json", '"carried_over":{"commit":"', '"carried_over":{"commit":"0'),
    "scenario": ("results.json", '"scenario_id":"refund"', '"scenario_id":"voucher"'),
    "claim": ("session.json", '"scenario_id":"refund"', '"scenario_id":"voucher"'),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_fails_the_report(runs, name):
    file, old, new = FORGERIES[name]
    edit(runs / "head" / file, old, new)
    done, verdict = report(runs)
    assert done.returncode == 1, done.stdout
    kinds = {one["kind"] for one in verdict["summary"]["findings"] if one["blocking"]}
    assert "carried_over" in kinds


def test_an_earlier_result_of_changed_code_fails_the_report(runs):
    edit(runs / "work/refund.py", "refund", "sorry")
    done, verdict = report(runs)
    assert done.returncode == 1, done.stdout
    (finding,) = (one for one in verdict["summary"]["findings"] if one["blocking"])
    assert (finding["data"]["problem"], finding["data"]["scenarios"]) == (
        "not_proven_unchanged",
        ["refund"],
    )


def test_shards_carry_a_result_over_once(runs):
    shutil.rmtree(runs / "head")
    for index in (1, 2):
        words = ("run", ".", "--affected", "--baseline", "../base", "--shard", f"{index}/2")
        folder = f"../head/{index}"
        done = run_agent_eval(*words, "--report-dir", folder, cwd=runs / "work")
        assert done.returncode == 0, done.stdout
    texts = [(runs / f"head/{index}/results.json").read_text() for index in (1, 2)]
    assert [text.count('"carried_over"') for text in texts] == [1, 0]
    done, verdict = report(runs)
    assert done.returncode == 0, done.stdout
    assert verdict["counts"]["carried_over"] == {"episodes": 1, "scenarios": 1}
