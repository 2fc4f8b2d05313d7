"""The table of pytest's options, held against the pytest that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import (
    ARITY,
    CANCELLED_BY,
    OPTIONS,
    classify_pytest_arguments,
)
from ci_agent_eval.steering.policy.words import make_words
from tests.tables import read_rows

ARITIES = {0: "0", None: "1", 2: "2", "?": "?", "+": "+"}
WORDS = read_rows(Path(__file__).parent / "pytest_arguments.jsonl")
"""Arguments to try."""

RUN = """
import json, shutil, sys, pytest
from pathlib import Path

import pytest

class Count:
    def __init__(self): self.calls = 0
    def pytest_runtest_call(self, item): self.calls += 1

results = []
for number, words in enumerate(json.load(open("words.json"))):
    for name in [name for name in sys.modules if name.startswith(("test_", "tests"))]:
        del sys.modules[name]
    if number:
        shutil.copytree(".cache-0", f".cache-{number}")
    count = Count()
    with pytest.MonkeyPatch.context() as patch:
        code = pytest.main(["-o", f"cache_dir={Path.cwd()}/.cache-{number}", *words], [count])
    results.append([int(code), count.calls])
json.dump(results, open("results.json", "w"))
"""


def live_options(config):
    actions = config._parser.optparser._actions
    return {
        spelling: ARITIES[action.nargs] for action in actions for spelling in action.option_strings
    }


def test_each_installed_option_takes_as_many_words_as_the_table_says(pytestconfig):
    live = live_options(pytestconfig)
    del live["--update-golden"]  # of our own conftest

    assert {name: ARITY.get(name) for name in live} == live


def test_options_with_a_meaning_are_in_the_table():
    meanings = ("expression", "narrowing", "selecting", "info")
    options = {option for name in meanings for option in OPTIONS[name]}
    assert options | CANCELLED_BY.keys() | set(CANCELLED_BY.values()) <= ARITY.keys()


def outcomes(project: Path) -> dict[tuple[str, ...], tuple[int, int]]:
    """Ask the real pytest about all arguments that are tried: exit code and tests run."""
    (project / "tests").mkdir()
    (project / "pytest.ini").write_text("[pytest]\nmarkers = fast\n")
    (project / "arguments.txt").write_text("tests/test_a.py\n")
    (project / "tests/test_a.py").write_text(
        "import pytest\n@pytest.mark.fast\ndef test_one(): pass\ndef test_two(): pass\n"
    )
    (project / "tests/test_z.py").write_text("def test_last(): assert 0\n")
    (project / "words.json").write_text(json.dumps(WORDS))
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=project,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads((project / "results.json").read_text())
    return {tuple(words): tuple(each) for words, each in zip(WORDS, results, strict=True)}


def expected(words: tuple[str, ...], ran: int) -> str:
    """Say in our words what the real pytest did, which has three tests to run."""
    if words == ("tests",):
        return "targeted" if ran == 3 else "nothing"  # a folder, which here holds all tests
    return {0: "nothing", 3: "full"}.get(ran, "targeted")


@pytest.mark.full
def test_the_real_pytest_does_what_we_say(tmp_path):
    wrong = []
    for words, (code, ran) in outcomes(tmp_path).items():
        verdict = classify_pytest_arguments(make_words(*words), ".", Rules())
        if code not in {0, 1, 2, 5} or verdict.reach != expected(words, ran):
            wrong.append((words, verdict, {"code": code, "ran": ran}))

    assert wrong == []
