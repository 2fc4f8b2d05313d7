"""docs/judges.md: its checks load, its labels parse, its tests pass, its options exist."""

from __future__ import annotations

import re
from pathlib import Path

from ci_agent_eval.app.cli.judge import judge
from ci_agent_eval.app.judging.plan import load_plan
from ci_agent_eval.contract.human_labels import parse_labels
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.processes import run_python

PAGE = (Path(__file__).parents[2] / "docs/judges.md").read_text()


def block(language, number=0):
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found[number]


def test_the_file_of_checks_loads(tmp_path):
    path = tmp_path / "judges.py"
    path.write_text(block("python"))
    plan = load_plan(path)
    assert len(plan.find_checks("refund_late")) == 3
    assert len(plan.find_checks("greeting")) == 2
    assert plan.find_budgets("greeting")[0].max_turns.limit == 4


def test_the_labels_parse():
    labels = parse_labels(block("csv"), is_lines=False)
    assert [(one.iteration, one.passed) for one in labels] == [(1, True), (2, False)]


def test_every_option_is_one_of_the_command():
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    known = {name for option in judge.params for name in option.opts}
    assert named - known == {"--llm-model"}


def test_the_tests_of_texts_pass(tmp_path):
    (tmp_path / "test_texts.py").write_text(block("python", 1))
    verdict = Step(
        tool_calls=[call("final_result", reason="it greets", **{"pass": True, "score": 1.0})]
    )
    grades = [
        {"name": "accuracy", "reason": "right", "score": 4},
        {"name": "clarity", "reason": "short", "score": 8},
    ]
    script = {
        "friendly greeting": [verdict],
        "is a greeting": [verdict],
        "plan": [Step(tool_calls=[call("final_result", reason="good", grades=grades)])],
    }
    with ModelServer(script) as server:
        done = run_python(
            *("-m", "pytest", "-q", "test_texts.py"),
            cwd=tmp_path,
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="sk-test-of-nobody-0123456789",
        )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
