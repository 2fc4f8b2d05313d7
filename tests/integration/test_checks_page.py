"""docs/checks.md: its code runs, its outputs are real, and it names every check there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval import checks
from ci_agent_eval.app.cli.judge import judge
from ci_agent_eval.app.judging.labels import parse_labels
from ci_agent_eval.app.judging.rejudge import load_plan
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.processes import clean_environ, run_agent_eval, run_python
from tests.tables import each_row

PAGE = (Path(__file__).parents[2] / "docs/checks.md").read_text()
ALL = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FILES = {code[2:].split("\n")[0]: code for _, code in ALL if re.match(r"# \w+\.py\n", code)}
BLOCKS = [code for kind, code in ALL if kind == "python" and code not in FILES.values()]
VERDICT = Step(tool_calls=[call("final_result", reason="it does", **{"pass": True, "score": 1.0})])
GRADES = [
    {"name": "clarity", "reason": "short", "score": 4},
    {"name": "tone", "reason": "dry", "score": 6},
]
SCRIPT = {
    "names the sum": [VERDICT],
    "tells the sum": [VERDICT],
    "asks first": [VERDICT, VERDICT],
    "first reading": [Step(tool_calls=[call("final_result", reason="fine", grades=GRADES)])],
}

DEEPEVAL = {
    "__init__.py": "",
    "metrics.py": """
import re
class PatternMatchMetric:
    def __init__(self, pattern, threshold=1.0):
        self.pattern, self.threshold = re.compile(pattern), threshold
    def measure(self, case):
        self.reason = f"fullmatch of the answer to {case.input!r}"
        return float(self.pattern.fullmatch(case.actual_output) is not None)
""",
    "test_case.py": """
from dataclasses import dataclass
@dataclass
class LLMTestCase:
    input: str
    actual_output: str
""",
}
"""The part of DeepEval that the page uses; the real one fits into no common environment."""


@pytest.fixture(scope="module")
def episodes(tmp_path_factory):
    """The episodes of the page, run as it stands; a script answers for the judge."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "test_page.py").write_text("\n\n".join(BLOCKS))
    (folder / "deepeval").mkdir()
    for name, code in DEEPEVAL.items():
        (folder / "deepeval" / name).write_text(code)
    with ModelServer(SCRIPT) as server:
        judge = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test-of-nobody-012345"}
        command = [sys.executable, "-m", "pytest", "-W", "error", "--episode-report-dir=out"]
        done = subprocess.run(
            [*command, "test_page.py"],
            cwd=folder,
            env={**clean_environ(), **judge},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    results = json.loads((folder / "out/results.json").read_text())
    return {episode["nodeid"].rpartition("::")[2]: episode for episode in results["episodes"]}


def test_every_block_has_a_test_that_passes(episodes):
    tests = [name for block in BLOCKS for name in re.findall(r"def (test_\w+)", block)]
    assert len(tests) == len(BLOCKS) - 1  # the first one is the conversation
    assert [episodes[name]["outcome"] for name in tests] == ["passed"] * len(tests)


def test_every_check_of_the_page_was_made_and_says_why(episodes):
    made = {name: episode["assertions"] for name, episode in episodes.items()}
    calls = {
        name: block.count("check(")
        for block in BLOCKS
        for name in re.findall(r"def (test_\w+)", block)
    }
    calls["test_calls_and_texts"] += 1  # two limits, two assertions
    calls["test_rubric"] += 2  # two dimensions and their composite
    assert {name: len(found) for name, found in made.items()} == calls
    assert all(assertion["reason"] for found in made.values() for assertion in found)
    assert episodes["test_rubric"]["judge"]["calls"] == 5


def test_every_check_has_an_example():
    code = "\n".join(BLOCKS)
    for name in set(checks.__all__) - {
        *("Check", "ScoringDimension", "as_check", "from_evaluator")
    }:
        assert f"check({name}(" in code, name


def test_the_difference_of_the_state_is_that_of_the_report(tmp_path):
    (code,) = (block for block in BLOCKS if "def test_state" in block)
    greedy = code.replace(" where id = 1001", "")
    assert greedy != code
    (tmp_path / "test_page.py").write_text(f"from ci_agent_eval import check\n{greedy}")
    done = run_agent_eval("run", "test_page.py", cwd=tmp_path)
    assert done.returncode == 1
    (diff,) = (f"```diff\n{code}```" for kind, code in ALL if kind == "diff")
    assert diff in (tmp_path / "agent-eval-report/comment.md").read_text()


def test_the_file_of_checks_loads_and_the_labels_parse(tmp_path):
    (tmp_path / "judges.py").write_text(FILES["judges.py"])
    plan = load_plan(tmp_path / "judges.py")
    assert len(plan.find_checks("refund_late")) == 3
    assert len(plan.find_checks("greeting")) == 2
    assert plan.find_budgets("greeting")[0].max_turns.limit == 4
    (labels,) = (parse_labels(code, is_lines=False) for kind, code in ALL if kind == "csv")
    assert [(label.iteration, label.passed) for label in labels] == [(1, True), (2, False)]
    options = {name for option in judge.params for name in option.opts}
    assert {"--results", "--only-checks", "--labels"} <= options


def run_evaluation(folder, name, code, *arguments):
    (folder / name).write_text(code)
    done = run_python("-m", "pytest", "-q", "-W", "error", *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout
    return done.stdout, json.loads((folder / "eval-results.json").read_text())


def list_assertions(report):
    (conversation,) = report["conversations"]
    return [(a["description"], a["passed"]) for a in conversation["assertions"]]


@each_row("arguments", [["--eval"], ["shop_eval.py"]], ids=["option", "name"])
def test_the_table_of_the_evaluation_is_printed(tmp_path, arguments):
    printed, report = run_evaluation(tmp_path, "shop_eval.py", FILES["shop_eval.py"], *arguments)
    (table,) = (code for kind, code in ALL if kind == "text")
    lines = [re.sub(r" +[\d.]+ m?s$", "", line) for line in printed.splitlines()]
    for line in table.splitlines():
        assert re.sub(r" +[\d.]+ m?s$", "", line) in lines
    assert len(list_assertions(report)) == 4
