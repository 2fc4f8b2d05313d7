"""The table of pytest's options, held against the pytest that is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.steering.policy import pytest_options
from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import classify_pytest_arguments
from ci_agent_eval.steering.policy.pytest_options import (
    ARITY,
    CANCELLED_BY,
    INFO_OPTIONS,
    NARROWING_OPTIONS,
)
from ci_agent_eval.steering.policy.words import make_words

ARITIES = {0: "0", None: "1", 2: "2", "?": "?", "+": "+"}
CORE = frozenset(
    re.sub(r"[=?+]+$", "", word)
    for word in re.search(r"# pytest [\d.]+\n(.*?)\n#", pytest_options._TABLE, re.DOTALL)[1].split()
)
"""The options of pytest itself: each is tried below."""

UNTRIED = {
    "--pastebin": "it sends the results to a server",
    "--trace": "it waits for a user at each test",
}
LEAVE_OUT = {
    "--deselect": "tests/test_a.py",
    "--ignore": "tests/test_a.py",
    "--ignore-glob": "*/test_a.py",
}
"""They leave out a part, and count as a full run all the same."""
NARROW = {"-k": "one", "-m": "fast", "--lf": None, "--last-failed": None}
VALUES = LEAVE_OUT | {
    "-W": "ignore",
    "-c": "pytest.ini",
    "-k": "one",
    "-m": "fast",
    "-o": "xfail_strict=true",
    "-p": "no:doctest",
    "-r": "a",
    "--assert": "plain",
    "--basetemp": "base",
    "--capture": "sys",
    "--code-highlight": "no",
    "--color": "no",
    "--confcutdir": "tests",
    "--config-file": "pytest.ini",
    "--doctest-glob": "*.rst",
    "--doctest-report": "none",
    "--durations": "3",
    "--durations-min": "1",
    "--import-mode": "importlib",
    "--junit-prefix": "x",
    "--junit-xml": "junit.xml",
    "--junitprefix": "x",
    "--junitxml": "junit.xml",
    "--last-failed-no-failures": "none",
    "--lfnf": "none",
    "--log-auto-indent": "on",
    "--log-cli-date-format": "x",
    "--log-cli-format": "%(message)s",
    "--log-cli-level": "INFO",
    "--log-date-format": "x",
    "--log-disable": "x",
    "--log-file": "tests.log",
    "--log-file-date-format": "x",
    "--log-file-format": "%(message)s",
    "--log-file-level": "INFO",
    "--log-file-mode": "a",
    "--log-format": "%(message)s",
    "--log-level": "INFO",
    "--max-warnings": "100",
    "--maxfail": "1",
    "--override-ini": "xfail_strict=true",
    "--pdbcls": "pdb:Pdb",
    "--pythonwarnings": "ignore",
    "--report-chars": "a",
    "--rootdir": "tests",
    "--show-capture": "no",
    "--tb": "short",
    "--verbosity": "1",
}
WORDS = [
    [],
    [""],
    ["."],
    ["./"],
    ["tests/.."],
    ["tests"],
    ["tests/test_a.py"],
    ["tests/test_a.py::test_one"],
    ["tests/test_a.py", "."],
    [".", "tests/test_a.py"],
    ["tests/test_a.py", "--co"],
    ["--", "tests/test_a.py"],
    ["@arguments.txt"],
    ["-k", ""],
    ["-k", " "],
    ["-k="],
    ["-k=one"],
    ["-kone"],
    ["-xk", "one"],
    ["-xkone"],
    ["-k", "one", "-k", ""],
    ["-k", "", "-k", "one"],
    ["-m", ""],
    ["-m", "not fast"],
    ["-mfast"],
    [".", "-k", "one"],
    [".", "--lf"],
    ["--maxfail=1", "tests/test_a.py"],
    ["--maxfail", "1", "tests/test_a.py"],
    ["--debug", "trace.log"],
    ["--cache-show", "*"],
    ["-VV"],
    ["--sw", "--sw-skip"],
    ["-ra", "-q", "-s"],
    ["--tb", "no", "--no-header"],
    ["--deselect", "tests/test_a.py::test_one", "tests/test_a.py"],
]
"""Further arguments to try."""

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
    assert (
        INFO_OPTIONS | NARROWING_OPTIONS | CANCELLED_BY.keys() | set(CANCELLED_BY.values())
    ) <= ARITY.keys()


def tried() -> list[list[str]]:
    alone = [
        [name] if VALUES.get(name) is None else [name, VALUES[name]]
        for name in sorted(CORE - UNTRIED.keys())
    ]
    joined = [
        [f"{name}={VALUES[name]}"] for name in sorted(CORE & VALUES.keys()) if name.startswith("--")
    ]
    return [[], *alone, *joined, *WORDS]


def outcomes(project: Path) -> dict[tuple[str, ...], tuple[int, int]]:
    """Ask the real pytest about all arguments that are tried: exit code and tests run."""
    (project / "tests").mkdir()
    (project / "pytest.ini").write_text("[pytest]\nmarkers = fast\n")
    (project / "arguments.txt").write_text("tests/test_a.py\n")
    (project / "tests/test_a.py").write_text(
        "import pytest\n@pytest.mark.fast\ndef test_one(): pass\ndef test_two(): pass\n"
    )
    (project / "tests/test_z.py").write_text("def test_last(): assert 0\n")
    (project / "words.json").write_text(json.dumps(tried()))
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
    return {tuple(words): tuple(each) for words, each in zip(tried(), results, strict=True)}


def expected(words: tuple[str, ...], ran: int) -> str:
    """Say in our words what the real pytest did, which has three tests to run."""
    if words and words[0].partition("=")[0] in LEAVE_OUT and len(words) < 3:
        return "full" if ran == 1 else "nothing"  # only a part is left out
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
