"""`agent-eval run --resume`: keep what a killed run has finished, and run the rest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.processes import run_agent_eval
from tests.repositories import TestRepository

SUITE = """
import os, signal
from pathlib import Path

import pytest

LOG = Path("../log")

def note(name):
    with LOG.open("a") as file:
        file.write(f"{name}\\n")

@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.episode("refund", iterations=2)
async def test_refund(episode, language, request):
    note(request.node.name)
    with episode.turn("Hello") as turn:
        turn.reply(os.environ["DESK"] + Path("notes.txt").read_text())
    episode.check("polite", request.node.name != "test_refund[en-1-of-2]")

@pytest.mark.episode("cancel")
async def test_cancel(episode):
    note("cancel")
    if Path("../kill").exists():
        Path("../kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    with episode.turn("Hello") as turn:
        turn.reply("Done")
    episode.check("polite", True)

@pytest.mark.episode("greet")
async def test_greet(episode):
    note("greet")
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    episode.check("polite", True)
"""
REFUNDS = [f"test_refund[{language}-{n}-of-2]" for language in ("de", "en") for n in (1, 2)]


class Rig:
    """A repository with a suite whose test of `cancel` kills the first run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.report = root / "work/agent-eval-report"

    def run(self, *words: str, desk: str = "blue"):
        return run_agent_eval("run", ".", *words, cwd=self.root / "work", DESK=desk)

    @property
    def log(self) -> list[str]:
        return sorted((self.root / "log").read_text().split())

    def read(self, name: str):
        return json.loads((self.report / name).read_text())


def build_rig(root: Path) -> Rig:
    repository = TestRepository(root / "work")
    repository.write("test_desk.py", SUITE)
    repository.write(".gitignore", "notes.txt\n")
    repository.commit()
    repository.write("notes.txt", "be kind")
    (root / "kill").touch()
    return Rig(root)


@pytest.mark.parametrize("words", [(), ("-n2",), ("--episode-concurrency=3",)], ids=str)
def test_each_episode_of_a_killed_run_is_run_once(tmp_path, words):
    rig = build_rig(tmp_path)
    arguments = ("--", "-p", "no:randomly", *words)
    assert rig.run(*arguments).returncode == 1
    before = rig.log
    done = rig.run("--resume", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr  # the kept failure stays one
    assert sorted(set(rig.log)) == sorted([*REFUNDS, "cancel", "greet"])
    finished = rig.read("session.json")["kept"]["episodes"]
    assert finished >= 1
    assert len(rig.log) == len(before) + 6 - finished
    episodes = rig.read("results.json")["episodes"]
    assert len(episodes) == 6
    failed = [one["nodeid"] for one in episodes if one["outcome"] == "failed"]
    assert failed == ["test_desk.py::test_refund[en-1-of-2]"]
    assert f"{finished} episode" in " ".join(done.stdout.split())
    verdict = rig.read("verdict.json")
    assert verdict["summary"]["findings"] == []
    assert verdict["summary"]["kept"]["episodes"] == finished
    # Nothing is left to run, and what two attempts have finished is kept of both.
    assert rig.run("--resume", *arguments).returncode == 1
    assert rig.read("session.json")["kept"]["episodes"] == 6
    assert len(rig.read("results.json")["episodes"]) == 6


def test_a_shard_with_kept_episodes_does_not_know_all_their_dependencies(tmp_path):
    """Another shard may have other episodes of the same scenario."""
    rig = build_rig(tmp_path)
    arguments = ("--shard", "1/1", "--", "-p", "no:randomly")
    for resume in ((), ("--resume",)):
        rig.run(*resume, *arguments)
    assert rig.read("session.json")["kept"]["episodes"]
    assert not rig.read("dependencies.json").get("complete", True)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    rig = build_rig(tmp_path_factory.mktemp("resume"))
    repository = rig.root / "work/test_desk.py"
    assert "SIGKILL" in repository.read_text()
    rig.run("--", "-p", "no:randomly")
    return rig


@pytest.fixture
def rig(killed, tmp_path):
    shutil.copytree(killed.root, tmp_path, dirs_exist_ok=True)
    return Rig(tmp_path)


def test_a_kept_scenario_has_no_recorded_dependencies(rig):
    assert rig.run("--resume", "--", "-p", "no:randomly").returncode == 1
    scenarios = {one["scenario_id"] for one in rig.read("dependencies.json")["scenarios"]}
    assert scenarios == {"cancel", "greet"}


def change_file(rig):
    (rig.root / "work/test_desk.py").write_text(SUITE.replace("Hi", "Hey"))


def commit(rig):
    TestRepository(rig.root / "work").commit()


def change_notes(rig):
    (rig.root / "work/notes.txt").write_text("be quick")


def forge_run(rig):
    session = rig.read("session.json")
    (rig.report / "session.json").write_text(json.dumps(session | {"run": "7"}))


REFUSALS = {
    "file": (change_file, "the uncommitted file test_desk.py has changed"),
    "commit": (commit, "it is about commit"),
    "dependency": (change_notes, "the file notes.txt, which git does not track, has changed"),
    "foreign": (forge_run, "it is of another workflow run"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_another_run_is_not_continued(rig, name):
    change, sentence = REFUSALS[name]
    change(rig)
    before, log = sorted(rig.report.glob("episodes/*")), rig.log
    done = rig.run("--resume", "--", "-p", "no:randomly")
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "or run everything, without --resume" in done.stderr
    assert (sorted(rig.report.glob("episodes/*")), rig.log) == (before, log)


def test_a_session_that_never_began_reports_nothing_of_the_earlier_attempt(rig):
    (rig.root / "work/conftest.py").write_text("raise RuntimeError")
    journal = (rig.report / "episodes/main.jsonl").read_bytes()
    done = rig.run("--resume", "--", "-p", "no:randomly")
    assert done.returncode == 1, done.stdout + done.stderr
    assert rig.read("verdict.json")["counts"]["episodes"]["passed"] == 0
    assert (rig.report / "episodes/main.jsonl").read_bytes() == journal


def test_a_changed_variable_is_not_continued(rig):
    done = rig.run("--resume", "--", "-p", "no:randomly", desk="red")
    assert (done.returncode, "environment variable DESK has changed" in done.stderr) == (2, True)


def test_a_forged_gate_is_not_kept(rig):
    journal = rig.report / "episodes/main.jsonl"
    text = journal.read_text()
    journal.write_text(
        text.replace('"scenario_id":"refund"', '"gate":"advisory","scenario_id":"refund"')
    )
    done = rig.run("--resume", "--", "-p", "no:randomly")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "episodes" not in rig.read("session.json")["kept"]
    assert sum(name.startswith("test_refund") for name in rig.log) == 8


def test_without_an_earlier_attempt_everything_runs(tmp_path):
    rig = build_rig(tmp_path)
    (tmp_path / "kill").unlink()
    rig.run("--resume")
    assert len(rig.log) == 6
    assert "kept" not in rig.read("session.json")
    done = rig.run("--resume-from", "../missing")
    assert (done.returncode, "is no folder" in done.stderr) == (2, True)


def test_outside_of_a_repository_no_earlier_result_is_deleted(tmp_path):
    rig = Rig(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "work/test_desk.py").write_text(SUITE)
    (tmp_path / "work/notes.txt").write_text("be kind")
    rig.run("--resume", "--", "-k", "greet")
    before = (rig.report / "episodes/main.jsonl").read_bytes()
    done = rig.run("--resume", "--", "-k", "greet")
    assert (done.returncode, "without a git repository" in done.stderr) == (2, True)
    assert (rig.log, (rig.report / "episodes/main.jsonl").read_bytes()) == (["greet"], before)
