"""`agent-eval run --confirm`: base and head run again in turn, in a repository with two commits."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.builders import episode
from tests.model_server import ModelServer
from tests.processes import run_agent_eval, started_python, wait_for
from tests.samples import run_sample

TESTS = """
import itertools, json, os, urllib.request
import pytest
from desk import prompt

calls = itertools.count()

def ask(text):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(os.environ["DESK_URL"] + "/chat/completions", body,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

@pytest.mark.parametrize("case", CASES)
@pytest.mark.episode(iterations=5, min_pass_rate=0.0)
def test_desk(episode, case):
    with episode.turn(case) as turn:
        turn.reply(ask(prompt(case, next(calls))), cost_usd=0.01)
    assert "done" in episode.turns[-1].content
"""
POLITE = 'def prompt(case, call): return f"please {case}"'
RUDE = 'def prompt(case, call): return case if case == "refund" else f"please {case}"'
GOOD = {"please": ["done"], "*": ["no idea"]}
CASES = ("refund", "cancel")


class Desk:
    """A repository whose `main` passes, with the results of a run of it beside it."""

    def __init__(self, folder, url):
        self.folder = folder / "desk"
        self.folder.mkdir()
        self.url = url
        self.git("init", "--quiet", "--initial-branch=main")
        self.write(".gitignore", "agent-eval-report\n__pycache__\n.pytest_cache\n")
        self.write("pytest.ini", "[pytest]\n")
        self.cases(*CASES)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def cases(self, *names):
        self.write("test_desk.py", TESTS.replace("CASES", repr(list(names))))
        ids = [f"test_desk.py::test_desk[{name}]" for name in names]
        fields = {"iterations": 5, "min_pass_rate": 0.0}
        base = [episode(i, nodeid=i, iteration=n, **fields) for i in ids for n in range(1, 6)]
        found = [item.model_dump(mode="json") for item in base]
        document = {"schema_version": "1", "suite": "default", "episodes": found}
        (self.folder.parent / "baseline.json").write_text(json.dumps(document))

    def git(self, *arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True,
                              capture_output=True, text=True)  # fmt: skip
        return done.stdout

    def commit(self, **files):
        for name, text in files.items():
            self.write(f"{name}.py", text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")

    def commit_twice(self, base, head):
        """Commit the base on `main`, and the head on a branch."""
        self.commit(desk=base)
        self.git("switch", "--quiet", "--create", "change")
        self.commit(desk=head)

    @property
    def arguments(self):
        return ("--baseline", self.folder.parent / "baseline.json", "--confirm")

    def agent_eval(self, command, *arguments, **environ):
        return run_agent_eval(
            *(command, *self.arguments, "--confirm-base", "main"),
            *arguments, cwd=self.folder, DESK_URL=self.url, **environ
        )  # fmt: skip

    @property
    def report(self):
        return self.folder / "agent-eval-report"

    @property
    def verdict(self):
        return json.loads((self.report / "verdict.json").read_text())["verdict"]

    def reasons(self, part="reasons"):
        return [(reason["kind"], reason["message"]) for reason in self.verdict[part]]


@pytest.fixture
def provider():
    with ModelServer(GOOD) as server:
        yield server


@pytest.fixture
def desk(tmp_path, provider):
    return Desk(tmp_path, provider.base_url)


def test_a_broken_head_is_confirmed(desk):
    desk.commit_twice(POLITE, RUDE)
    done = desk.agent_eval("run", "test_desk.py")
    assert done.returncode == 1, done.stdout
    ((kind, message),) = desk.reasons()
    assert kind == "regression"
    assert "confirmed: passes on the base today, 20 of 20, and 0 of 20 here" in message
    assert desk.git("worktree", "list").count("\n") == 1


@pytest.fixture(scope="module")
def bad_day(tmp_path_factory):
    """A run on a day on which the provider fails on both sides."""
    with ModelServer({"please cancel": ["done"], "*": ["no idea"]}) as server:
        found = Desk(tmp_path_factory.mktemp("bad-day"), server.base_url)
        found.commit_twice(POLITE, POLITE + "\n")
        found.done = found.agent_eval("run", "test_desk.py")
        yield found


def test_a_bad_day_of_the_provider_is_no_regression(bad_day):
    assert bad_day.done.returncode == 0, bad_day.done.stdout
    ((kind, message),) = bad_day.reasons("warnings")
    assert kind == "unconfirmed"
    assert "also fails on the base today: 0 of 20 passed there, and 0 of 20 here" in message
    headline = json.loads((bad_day.report / "verdict.json").read_text())["headline"]
    assert "1 drop not confirmed today" in headline


def change(**fields):
    """Return a function that changes fields of a document."""
    return lambda document: {**document, **fields}


def cut_last_run(document):
    return {**document, "runs": document["runs"][:-1]}


def cut_last_episode(document):
    *runs, last = document["runs"]
    return {**document, "runs": [*runs, {**last, "episodes": last["episodes"][:-1]}]}


@pytest.mark.parametrize(
    ("forge", "problem"),
    run_sample(
        [
            (lambda document: document, None),
            (change(results="0" * 64), "belongs to other results"),
            (change(suite="other"), "it belongs to another suite"),
            (change(commit="a" * 40), "it is about another commit"),
            (change(base_commit="a" * 40), "it belongs to another suite or commit"),
            (change(ended="the budget is used up"), "the budget is used up"),
            (change(blocks=9), "does not have one run of each side in 9 blocks"),
            (change(surplus=1), "cannot be read"),
            (cut_last_run, "does not have one run of each side"),
            (cut_last_episode, "episodes are missing"),
        ],
        {0, 1, 9},
    ),
)
def test_a_report_elsewhere_excuses_only_by_a_whole_confirmation_of_its_own(
    bad_day, tmp_path, forge, problem
):
    shutil.copytree(bad_day.report, tmp_path / "results")
    file = tmp_path / "results/confirmation.json"
    file.write_text(json.dumps(forge(json.loads(file.read_text()))))
    done = run_agent_eval("report", "--results", "results", *bad_day.arguments, cwd=tmp_path)
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    found = [(f["kind"], f["message"]) for f in verdict["summary"]["findings"]]
    if problem is None:
        assert (done.returncode, found) == (0, [])
    else:
        assert done.returncode == 1
        ((kind, message),) = found
        assert kind == "confirmation"
        assert problem in message


def test_a_report_without_the_file_or_without_the_setting_stays_red(bad_day, tmp_path):
    shutil.copytree(bad_day.report, tmp_path / "results")
    arguments = ("report", "--results", "results", *bad_day.arguments)
    assert run_agent_eval(*arguments, "--no-confirm", cwd=tmp_path).returncode == 1
    (tmp_path / "results/confirmation.json").unlink()
    assert run_agent_eval(*arguments, cwd=tmp_path).returncode == 1


@pytest.mark.full
def test_a_base_that_imports_the_code_of_the_head_excuses_nothing(desk):
    """As an editable installation of the head would make it."""
    (desk.folder / "src").mkdir()
    desk.commit(**{"src/desk": POLITE})
    desk.git("switch", "--quiet", "--create", "change")
    desk.commit(**{"src/desk": RUDE})
    done = desk.agent_eval("run", "test_desk.py", PYTHONPATH=str(desk.folder / "src"))
    assert done.returncode == 1, done.stdout
    ((kind, message),) = desk.reasons()
    assert kind == "regression"
    assert "too little was judged: 0 of 0 on the base, and 0 of 20 here" in message
    assert "desk comes from the other checkout" in done.stdout


@pytest.mark.full
def test_a_used_up_budget_ends_the_confirmation(desk):
    """The run costs $0.10, a block of a side $0.05."""
    desk.commit_twice(POLITE, POLITE.replace("please {case}", "{case}"))
    done = desk.agent_eval("run", "test_desk.py", "--total-cost-usd", "0.35")
    assert done.returncode == 1, done.stdout
    (found,) = json.loads((desk.report / "verdict.json").read_text())["summary"]["findings"]
    assert "suite budget total_cost_usd" in found["message"]
    assert [kind for kind, _ in desk.reasons()] == ["regression", "regression"]
    runs = json.loads((desk.report / "confirmation.json").read_text())["runs"]
    assert 1 <= len(runs) < 8


@pytest.mark.full
def test_a_killed_confirmation_leaves_the_report_and_the_next_run_cleans_up(desk, tmp_path):
    desk.commit_twice(POLITE, RUDE)
    arguments = ("run", "test_desk.py", *desk.arguments, "--confirm-base", "main")
    environ = {"DESK_URL": desk.url, "TMPDIR": str(tmp_path)}
    with started_python("-m", "ci_agent_eval", *arguments, cwd=desk.folder, **environ) as process:
        wait_for(process, "confirm: block 2, base")
        process.kill()
        process.wait()
    assert [kind for kind, _ in desk.reasons()] == ["regression"]
    assert not (desk.report / "confirmation.json").exists()
    assert desk.git("worktree", "list").count("\n") == 2
    done = desk.agent_eval("run", "test_desk.py", TMPDIR=str(tmp_path))
    assert done.returncode == 1, done.stdout
    assert "confirmed: passes on the base today" in desk.reasons()[0][1]
    assert desk.git("worktree", "list").count("\n") == 1
    assert not list(tmp_path.glob("agent-eval-base-*"))


def test_the_history_has_to_be_there(desk, tmp_path):
    desk.commit_twice(POLITE, RUDE)
    shallow = tmp_path / "shallow"
    desk.git("clone", "--quiet", "--depth=1", f"file://{desk.folder}", str(shallow))
    for ref in ("main", "origin/main"):
        done = run_agent_eval("run", *desk.arguments, "--confirm-base", ref, cwd=shallow)
        assert done.returncode == 2
        assert "actions/checkout: fetch-depth: 0" in done.stderr
    desk.git("fetch", "--quiet", "--depth=1", str(desk.folder), "main")
    assert not (shallow / "agent-eval-report/session.json").exists()


def test_wrong_input_is_one_sentence(desk):
    desk.commit_twice(POLITE, RUDE)
    for arguments, sentence in (
        (("--confirm",), "there is no baseline to confirm a drop from"),
        (desk.arguments, "neither this event nor the baseline names the base branch"),
        ((*desk.arguments, "--confirm-base", "gone"), "git knows no commit gone here"),
        ((*desk.arguments, "--confirm-base", "--force"), "git knows no commit --force here"),
    ):
        done = run_agent_eval("run", "test_desk.py", *arguments, cwd=desk.folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


def test_outside_of_a_repository_nothing_can_be_confirmed(desk, tmp_path):
    arguments = (*desk.arguments, "--confirm-base", "main")
    done = run_agent_eval("run", *arguments, cwd=tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert (done.returncode, "in no git repository" in done.stderr) == (2, True)


def test_a_head_that_is_its_own_base_is_not_excused(desk, provider):
    """As on a push to the base branch."""
    desk.commit(desk=RUDE)
    done = desk.agent_eval("run", "test_desk.py")
    assert done.returncode == 1
    assert "HEAD is an ancestor of main" in done.stdout
    assert [kind for kind, _ in desk.reasons()] == ["regression"]


def test_a_shard_confirms_nothing(desk):
    desk.commit_twice(POLITE, RUDE)
    done = desk.agent_eval("run", "test_desk.py", "--shard", "1/1")
    assert "a shard is not compared" in done.stdout
    assert not (desk.report / "confirmation.json").exists()
