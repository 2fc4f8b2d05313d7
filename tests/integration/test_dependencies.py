"""What `agent-eval run` records of the dependencies of real episodes."""

from __future__ import annotations

import json
import sys

import pytest

from ci_agent_eval.contract.dependencies import Dependencies
from ci_agent_eval.dependencies.document import unpack_dependencies
from tests.processes import run_agent_eval
from tests.repositories import TestRepository

HAS_FUNCTIONS = sys.version_info >= (3, 12)
"""Whether functions are told apart; on Python 3.11 modules are."""

DESK = """
import ctypes, functools, os, sqlite3, subprocess, sys
from pathlib import Path

HERE = Path(__file__).parent
GREETING = (HERE / "greeting.txt").read_text()

@functools.lru_cache
def load_policy():
    return (HERE / "policy.txt").read_text()

def answer(text):
    return GREETING + load_policy() + text

def refund(text):
    if os.access(HERE / "policy.txt", os.X_OK) or (HERE / "override.txt").exists():
        return "never"
    with sqlite3.connect(HERE / "orders.db") as db:
        return db.execute("select name from orders").fetchone()[0]

def list_shots():
    return sorted(path.name for path in (HERE / "shots").iterdir())

def get_region():
    return os.environ.get("DESK_REGION", "eu") + str("DESK_API_KEY" in os.environ)

def start_child():
    return subprocess.run([sys.executable, "-c", "print(1)"], check=True)
"""
TESTS = """
import pytest
import desk

def talk(episode, text):
    with episode.turn("hello") as turn:
        turn.reply(str(text))
    assert episode.turns

@pytest.fixture(scope="session")
def server():
    return desk.start_child()

@pytest.mark.episode("served")
def test_served(episode, server):
    talk(episode, server)

@pytest.mark.episode("served_again")
def test_served_again(episode, request):
    talk(episode, request.getfixturevalue("server"))

@pytest.mark.episode("answers")
def test_answers(episode):
    talk(episode, desk.answer("hi"))

@pytest.mark.episode("answers_again")
def test_answers_again(episode):
    talk(episode, desk.answer("hi"))

@pytest.mark.episode("refunds")
def test_refunds(episode):
    talk(episode, desk.refund("hi"))

@pytest.mark.episode("shots")
def test_shots(episode):
    talk(episode, desk.list_shots())

@pytest.mark.episode("region")
def test_region(episode):
    talk(episode, desk.get_region())

@pytest.mark.episode("child")
def test_child(episode):
    talk(episode, desk.start_child())

@pytest.mark.episode("declared_child", depends_on=["server/*.py"])
def test_declared_child(episode):
    talk(episode, desk.start_child())
"""
IGNORED = "agent-eval-report\n__pycache__\n.pytest_cache\n*.log\n"


@pytest.fixture
def desk(tmp_path):
    found = TestRepository(tmp_path / "desk")
    files = {
        "desk.py": DESK,
        "test_desk.py": TESTS,
        "greeting.txt": "Hello. ",
        "policy.txt": "No. ",
    }
    for name, text in {
        **files,
        ".gitignore": IGNORED,
        "shots/a.txt": "a",
        "conftest.py": "",
    }.items():
        found.write(name, text)
    import sqlite3

    with sqlite3.connect(found.folder / "orders.db") as db:
        db.execute("create table orders (name)")
        db.execute("insert into orders values ('espresso')")
    db.close()
    found.commit()
    return found


def run(desk, *words, **environ):
    environ = {"PYTHONDONTWRITEBYTECODE": "", **environ}
    done = run_agent_eval("run", *words, cwd=desk.folder, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    content = (desk.folder / "agent-eval-report/dependencies.json").read_bytes()
    return unpack_dependencies(Dependencies.model_validate_json(content))


def causes(reached):
    return {one.cause for one in reached.unknown}


@pytest.mark.parametrize("words", [(), ("--", "-n2"), ("--", "--episode-concurrency=4")])
def test_each_scenario_has_its_own_dependencies(desk, words):
    found = run(desk, *words, DESK_API_KEY="s3cret-value")
    assert found.complete
    assert found.is_clean
    assert found.commit == desk.git("rev-parse", "HEAD")
    scenarios = found.scenarios
    # Read while the module was imported, so by all that import it, and no others.
    assert all("greeting.txt" in one.files for one in scenarios.values())
    # Read in one of the two that call the cached function.
    assert "policy.txt" in scenarios["answers"].files & scenarios["answers_again"].files
    assert "orders.db" in scenarios["refunds"].files
    assert scenarios["refunds"].absent == {"override.txt"}
    assert "policy.txt" in scenarios["refunds"].files
    assert "shots" in scenarios["shots"].folders
    assert {"DESK_REGION", "DESK_API_KEY"} <= scenarios["region"].variables
    assert causes(scenarios["child"]) == {"child_process"}
    assert causes(scenarios["served"]) == causes(scenarios["served_again"]) == {"child_process"}
    assert causes(scenarios["declared_child"]) == set()
    assert scenarios["declared_child"].patterns == {"server/*.py"}
    assert found.find_importers("desk.py") == {"test_desk.py", "desk.py"}
    assert "test_desk.py" in scenarios["answers"].code_files
    if HAS_FUNCTIONS:
        # On Python 3.11 any function of an imported module may have run.
        assert not scenarios["answers"].unknown
        functions = {name: {one for _, one in r.functions} for name, r in scenarios.items()}
        assert {"answer", "load_policy", "talk"} <= functions["answers_again"]
        assert not {"refund", "get_region"} & functions["answers"]
        assert "override.txt" not in scenarios["answers"].absent
        assert "DESK_REGION" not in scenarios["answers"].variables


def test_a_package_from_elsewhere_counts_for_those_that_import_it(desk, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pricing.py").write_text("def find_price(): return '5'\n")
    (elsewhere / "script.py").write_text("def greet(): return 'hi'\ngreet()\n")
    desk.write("prices.py", "def find(): import pricing; return pricing.find_price()\n")
    for name, call in (
        ("prices", "import prices; talk(episode, prices.find())"),
        ("other", "talk(episode, 'hi')"),
    ):
        test = f"@pytest.mark.episode('{name}')\ndef test_{name}(episode): {call}\n"
        desk.write(f"test_{name}.py", f"import pytest\nfrom test_desk import talk\n{test}")
    desk.commit()
    environ = {"PYTHONPATH": str(elsewhere)}
    scenarios = run(desk, **environ).scenarios
    assert {name for name, one in scenarios.items() if "outside_file" in causes(one)} == {"prices"}

    # A script is no module, so nothing says which scenarios it concerns.
    desk.write("conftest.py", f"import runpy\nrunpy.run_path({str(elsewhere / 'script.py')!r})\n")
    desk.commit()
    found = run(desk, **environ)
    assert "outside_file" in causes(found.shared) | causes(found.scenarios["other"])


def test_values_of_secrets_are_not_even_hashed(desk):
    found = run(desk, DESK_API_KEY="s3cret-value", DESK_REGION="us")
    assert found.variables["DESK_API_KEY"] == "set"
    assert len(found.variables["DESK_REGION"] or "") == 64
    text = (desk.folder / "agent-eval-report/dependencies.json").read_text()
    assert "s3cret-value" not in text


def test_equal_runs_leave_equal_dependencies(desk):
    first, second = run(desk), run(desk)
    assert json.dumps(str(first.shared)) == json.dumps(str(second.shared))
    assert first.scenarios == second.scenarios
    assert first.hashes == second.hashes


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("open(HERE / 'cache.log').read()", "untracked_file"),
        ("open(HERE.parent / 'outside.txt').read()", "outside_file"),
        ("open(HERE / 'link.txt').read()", "symlink"),
        ("ctypes.CDLL(None)", "native_code"),
        ("__import__('socket').getaddrinfo('desk.invalid', 80)", "host"),
        ("__import__('multiprocessing').get_context('spawn').Process(target=print).start()",
         "child_process"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_unknown(desk, monkeypatch, body, cause):
    outside = desk.folder.parent / "outside.txt"
    outside.write_text("x")
    (desk.folder / "cache.log").write_text("x")
    (desk.folder / "link.txt").symlink_to(outside)
    # Files in the temporary folder are the tests' own, and this one is in it.
    monkeypatch.setenv("TMPDIR", str(desk.folder.parent / "tmp"))
    (desk.folder.parent / "tmp").mkdir()
    caught = f"    try: {body}\n    except OSError: pass\n    return 'x'"
    desk.edit("desk.py", 'return os.environ.get("DESK_REGION", "eu")', f"return ''\n{caught}\n#")
    desk.edit("desk.py", "    return ''\n", "")
    desk.commit()
    assert cause in causes(run(desk).scenarios["region"])


def test_a_silenced_recorder_is_noticed(desk):
    if not HAS_FUNCTIONS:
        pytest.skip("Python 3.11 has no sys.monitoring to silence")
    desk.edit("test_desk.py", "talk(episode, desk.list_shots())",
              "import sys; sys.monitoring.set_events(4, 0); talk(episode, 'x')")  # fmt: skip
    desk.commit()
    assert not run(desk).complete


def test_changed_files_make_a_run_no_base(desk):
    desk.edit("policy.txt", "No", "Yes")
    assert not run(desk).is_clean


def test_without_git_nothing_is_recorded(desk, tmp_path):
    import shutil

    shutil.rmtree(desk.folder / ".git")
    done = run_agent_eval("run", cwd=desk.folder)
    assert done.returncode == 0
    assert not (desk.folder / "agent-eval-report/dependencies.json").exists()
