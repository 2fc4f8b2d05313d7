"""Packages of other authors, and files that a mapping describes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.processes import clean_environ, run_agent_eval, run_python

# Packages of other authors, installed for real: checks, importers, formats, columns and sinks.


ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/extension_package"
PAGE = (ROOT / "docs/public-api.md").read_text()


class Environment:
    """A virtual environment that has the packages of the tests, and some of its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = folder / "bin/python"
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        lent = [sysconfig.get_path("purelib"), str(ROOT)]
        (site / "lent.pth").write_text("\n".join(lent) + "\n")

    def install(self, source: Path) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, *offline, str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: object, cwd: Path, **environ: str):
        return subprocess.run(
            [str(self.python), "-m", *map(str, arguments)],
            cwd=cwd,
            env=clean_environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the example package."""
    folder = tmp_path_factory.mktemp("extensions")
    found = Environment(folder / "venv")
    found.install(shutil.copytree(EXAMPLE, folder / "example"))
    return found


@pytest.fixture
def suite(tmp_path):
    return shutil.copytree(EXAMPLE / "suite", tmp_path / "suite")


def read_json(path: Path):
    return json.loads(path.read_text())


def test_a_suite_uses_the_check_the_format_the_column_and_the_sink(environment, suite, tmp_path):
    run = ("ci_agent_eval", "run", "suite", "--formats", "chat", "--", "-n2")
    done = environment.run(*run, cwd=tmp_path, ACME_EPISODES=str(tmp_path / "acme.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "agent-eval-report"
    (episode,) = read_json(folder / "results.json")["episodes"]
    assert [a["name"] for a in episode["assertions"]] == ["at most 6 words"]
    assert episode["columns"] == {"words": 6}
    assert '"columns":{"words":6}' in (folder / "report.html").read_text()
    assert read_json(folder / "chat.json")["text"] == "Agent evals passed: 1 of 1 scenario"
    (line,) = (tmp_path / "acme.jsonl").read_text().splitlines()
    assert json.loads(line) == {"scenario": "opening_hours", "outcome": "passed", "words": 6}


def test_results_of_its_tool_are_read(environment, suite, tmp_path):
    results = suite / "acme.json"
    report = ("ci_agent_eval", "report", "--results", "suite/acme.json")
    assert environment.run(*report, cwd=tmp_path).returncode == 0
    results.write_text(results.read_text().replace("verdict", "score"))
    done = environment.run(*report, cwd=tmp_path)
    assert done.returncode == 1
    verdict = (tmp_path / "agent-eval-report/verdict.json").read_text()
    assert "of the package agent-eval-acme failed (KeyError: 'verdict')" in verdict


def test_the_code_of_the_page_is_the_example_s_and_runs(tmp_path):
    files = [EXAMPLE / "pyproject.toml", *(EXAMPLE / "agent_eval_acme").glob("*.py")]
    typed, *shown, report = re.findall(
        r"^```(?:python|toml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    texts = [file.read_text() for file in files]
    assert [block for block in shown if not any(block in text for text in texts)] == []
    (tmp_path / "conftest.py").write_text(report)
    (tmp_path / "poem_eval.py").write_text("def test_poem():\n    assert True\n")
    done = run_python("-m", "pytest", "-s", "--eval", cwd=tmp_path)
    assert "1 of 1\n" in done.stdout
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    (tmp_path / "test_typed.py").write_text(typed)
    plain = run_python("-m", "pytest", "test_plain.py", "test_typed.py", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr


# Files of other formats that a mapping describes: JSON, JSON lines and CSV.


PAGE_MAPPING = (Path(__file__).parents[2] / "docs/other-tools.md").read_text()
MAPPING = """
[[mapping]]
files = "evals/*.*"
id = "case.name"
outcome = "status"
outcomes = { pass = "passed", fail = "failed", "1" = "passed", true = "passed" }
scores = { faith = "metrics.0.value" }
error = "exception"
reason = "why"
input = "question"
output = "answer"
input_tokens = "usage.in"
output_tokens = "usage.out"
cost_usd = "usage.cost"
latency_ms = "ms"
"""


def record(name="a", status="pass", **fields):
    return {"case": {"name": name}, "status": status, "question": "q", "answer": "r", **fields}


@pytest.fixture
def judge(tmp_path):
    """Report on records by a mapping; return the exit code and the episodes, or the message."""
    (tmp_path / "evals").mkdir()

    def run(records, *arguments, mapping=MAPPING, name="a.json"):
        (tmp_path / "map.toml").write_text(mapping)
        text = records if isinstance(records, str) else json.dumps(records)
        (tmp_path / "evals" / name).write_text(text)
        command = ("report", "--results", "evals", "--mapping", "map.toml", *arguments)
        done = run_agent_eval(*command, cwd=tmp_path)
        if done.returncode > 1:
            return done.returncode, done.stderr
        lines = (tmp_path / "agent-eval-report/results.json").read_text().splitlines()
        episodes = [json.loads(line.removesuffix(",")) for line in lines[1:-1]]
        return done.returncode, {(e["scenario_id"], e.get("iteration", 1)): e for e in episodes}

    return run


def outcomes(found):
    return {key: episode["outcome"] for key, episode in found.items()}


def test_records_are_episodes(judge):
    code, found = judge([record("a"), record("b", "fail", why="too late"), record("a", 1)])
    assert (code, outcomes(found)) == (
        1,
        {("a", 1): "passed", ("a", 2): "passed", ("b", 1): "failed"},
    )
    assert found["b", 1]["reason"] == "too late"


@pytest.mark.parametrize("status", ["PASS", "passed", "", None, False, 0, 2, ["pass"], {"a": 1}])
def test_a_value_without_meaning_does_not_pass(judge, status):
    code, found = judge([record("a", status)])
    assert (code, outcomes(found)) == (1, {("a", 1): "error"})
    assert "for which the mapping has no outcome" in found["a", 1]["reason"]


def test_an_error_is_an_error_whatever_the_status(judge):
    code, found = judge([record("a", exception="timeout")])
    assert (code, found["a", 1]["outcome"], found["a", 1]["reason"]) == (1, "error", "timeout")


def test_scores_need_thresholds(judge):
    mapping = re.sub(r"outcomes?( =.*)\n", "", MAPPING)
    records = [record("a", metrics=[{"value": 0.9}]), record("b", metrics=[{"value": "high"}])]
    assert outcomes(judge(records, mapping=mapping)[1]) == {("a", 1): "error", ("b", 1): "error"}
    code, found = judge(records, "--score-thresholds", "faith>=0.8", mapping=mapping)
    assert (code, outcomes(found)) == (1, {("a", 1): "passed", ("b", 1): "error"})


def test_lines_and_tables_say_the_same(judge, tmp_path):
    lines = "".join(json.dumps(one) + "\n" for one in (record("a"), record("b", "fail")))
    from_lines = judge(lines, name="a.jsonl")
    (tmp_path / "evals/a.jsonl").unlink()
    table = "case.name,status,usage.cost\na,pass,0.5\nb,fail,\n"
    from_table = judge(table, name="a.csv")
    assert from_lines[0] == from_table[0] == 1
    assert outcomes(from_lines[1]) == outcomes(from_table[1])
    assert from_table[1]["a", 1]["trajectory"]["turns"][1]["cost_usd"] == 0.5


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"rows": []}, "has no list as its content"),
        ([], "holds no results"),
        ([{"status": "pass"}], "its record 1 has no id at 'case.name'"),
        ([record(), "text"], "its record 2 has no id"),
        ("[", "not JSON"),
    ],
)
def test_a_file_that_does_not_fit_fails_the_gate(judge, tmp_path, records, message):
    assert judge(records)[0] == 1
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    messages = [finding["message"] for finding in verdict["summary"]["findings"]]
    assert any(message in one for one in messages), messages


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("id = ", "ids = "), "map.toml:4: mapping.0: unknown key"),
        (('"failed"', '"fail"'), "map.toml:6: mapping.0.outcomes.fail"),
        (('outcome = "status"\n', ""), "needs outcome, the path, and outcomes"),
        (("[[mapping]]", ""), "map.toml"),
    ],
)
def test_a_wrong_mapping_is_refused_with_its_line(judge, change, message):
    code, told = judge([record()], mapping=MAPPING.replace(*change, 1))
    assert code == 2
    assert message in told


MAPPINGS = re.findall(r"```toml\n(\[\[mapping\]\].*?)```", PAGE_MAPPING, re.DOTALL)


def test_the_mapping_of_the_page_reads_documents_of_lm_eval(judge):
    records = [{"doc_id": n, "doc": {"question": "q"}, "exact_match": 1.0 - n} for n in (0, 1)]
    code, found = judge(
        "".join(json.dumps(record) + "\n" for record in records),
        *("--score-thresholds", "exact_match>=1"),
        mapping=MAPPINGS[1],
        name="samples_gsm8k.jsonl",
    )
    assert (code, outcomes(found)) == (1, {("0", 1): "passed", ("1", 1): "failed"})


def test_the_mapping_of_the_page_reads_its_records(judge, tmp_path):
    mapping, _ = MAPPINGS
    (records,) = re.findall(r"```json\n(.*?)```", PAGE_MAPPING, re.DOTALL)
    code, found = judge(records, "--score-thresholds", "tone>=0.5", mapping=mapping)
    assert (code, outcomes(found)) == (0, {("refund", 1): "passed"})
