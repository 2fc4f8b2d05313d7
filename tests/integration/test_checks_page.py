"""docs/checks.md: all of its code is one suite, and it names every check there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval import checks
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.processes import clean_environ

PAGE = (Path(__file__).parents[2] / "docs/checks.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
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
    calls["test_limits"] += 1  # two limits, two assertions
    calls["test_panel"] += 2  # two dimensions and their composite
    assert {name: len(found) for name, found in made.items()} == calls
    assert all(assertion["reason"] for found in made.values() for assertion in found)
    assert episodes["test_rubric"]["judge"]["calls"] == 2
    assert episodes["test_panel"]["judge"]["calls"] == 3


def test_every_check_has_a_row_in_the_table_and_an_example():
    code = "\n".join(BLOCKS)
    for name in set(checks.__all__) - {
        *("Check", "ScoringDimension", "as_check", "from_evaluator")
    }:
        assert f"| [`{name}(" in PAGE, name
        assert f"check({name}(" in code, name
