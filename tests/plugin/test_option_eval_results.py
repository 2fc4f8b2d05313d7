"""`--eval-results`: where the evaluation report goes, and whose file it never takes."""

from __future__ import annotations

import json
import signal

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

EVALUATION = """
import pytest

@pytest.mark.episode(scenario_id="Create")
def test_create():
    canvas = "A -> B"
    assert "A" in canvas
    assert "C" in canvas, "no C"
    assert canvas.count("B") == 1

@pytest.mark.episode(scenario_id="Extend")
@pytest.mark.parametrize("name", ["B", "C"])
def test_extend(name):
    assert name in "A -> B"

@pytest.mark.episode(scenario_id="Break")
def test_break():
    assert True
    raise ConnectionError("refused")

@pytest.mark.skip(reason="no key")
def test_skipped():
    assert False
"""

FOREIGN = '{\n  "totalConversations": 3\n}'


@pytest.fixture
def evals(pytester):
    pytester.makeconftest(SCRIPTED_CLOCK)
    pytester.makepyfile(diagram_eval=EVALUATION)
    return pytester


def read(path):
    return json.loads(path.read_text())


def test_without_a_report_directory_it_is_written_here_and_the_table_says_the_same(evals):
    result = evals.runpytest_inprocess("diagram_eval.py", "-n2")
    found = read(evals.path / "eval-results.json")
    assert [c["name"] for c in found["conversations"]] == [
        "Break",
        "Create",
        "Extend [1]",
        "Extend [2]",
    ]
    assert (found["totalConversations"], found["passedConversations"]) == (4, 1)
    assert (found["passRate"], found["averageScore"]) == (25, 0.555556)
    create = found["conversations"][1]
    assert [(a["description"], a["passed"], a["score"]) for a in create["assertions"]] == [
        ('"A" in canvas', True, 1),
        ('"C" in canvas', False, 0),
        ('canvas.count("B") == 1', True, 1),
    ]
    assert create["assertions"][1]["reason"].startswith("no C")
    assert found["conversations"][0]["error"].startswith("ConnectionError: refused")
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if line.strip("=") == " evaluations ")
    table = [" ".join(line.split()) for line in lines[start + 1 : start + 13]]
    # The times of the scripted clock are the same for every conversation.
    duration = table[1].partition("1/1 ")[2]
    assert table == [
        "conversation passed score assertions duration",
        f"Break error - 1/1 {duration}",
        "error: ConnectionError: refused (diagram_eval.py:18)",
        f"Create no 0.67 2/3 {duration}",
        "diagram_eval.py:7: \"C\" in canvas: no C (assert 'C' in 'A -> B')",
        f"Extend [1] yes 1.00 1/1 {duration}",
        f"Extend [2] no 0.00 0/1 {duration}",
        "diagram_eval.py:13: name in \"A -> B\": assert 'C' in 'A -> B'",
        "diagram_eval.py::test_skipped skipped - 0/0 -",
        "skipped: no key",
        (
            "4 conversations: 1 passed (25.0 %), average score 0.56; "
            "1 ended in an error, not in the average; 1 skipped, not counted"
        ),
        "wrote eval-results.json",
    ]
    assert not any("FAILED Create" in line for line in lines), "an evaluation fails no scenario"


def test_with_a_report_directory_it_is_there_and_a_named_file_beside_it(evals):
    evals.makeini("[pytest]\neval_results = a.json\n")
    evals.runpytest_inprocess("diagram_eval.py", "--episode-report-dir=report")
    inside = (evals.path / "report/eval-results.json").read_bytes()
    assert json.loads(inside)["totalConversations"] == 4
    evals.runpytest_inprocess("diagram_eval.py", "--eval-results=out/b.json")
    for name in ("a.json", "out/b.json"):
        assert (evals.path / name).read_bytes() == inside
    assert not (evals.path / "eval-results.json").exists()


def test_a_file_of_others_is_refused_before_anything_runs(evals):
    (evals.path / "eval-results.json").write_text(FOREIGN)
    (evals.path / "taken").write_text("mine")
    said = (
        f"ERROR: eval results: {evals.path}/eval-results.json: was not written by this program and "
        "would be overwritten; move it, or name another file with --eval-results"
    )
    for arguments, problem in [
        ([], said),
        (["-n2"], said),
        (
            ["--eval-results=taken/a.json"],
            "ERROR: eval results: */taken/a.json: cannot be written (*",
        ),
    ]:
        result = evals.runpytest_inprocess("diagram_eval.py", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, arguments
        result.stderr.fnmatch_lines([problem])
        assert "passed" not in result.stdout.str()
    assert (evals.path / "eval-results.json").read_text() == FOREIGN


def test_without_an_evaluation_that_runs_nothing_is_written_and_no_former_report_left(evals):
    report = evals.path / "eval-results.json"
    for arguments in (["--collect-only"], ["--eval-strict"], ["-k", "nothing"]):
        evals.runpytest_inprocess("diagram_eval.py", *arguments)
        assert not report.exists(), arguments
    evals.makepyfile(
        killed_eval="import os\ndef test_kill():\n    os.kill(os.getpid(), 9)\n",
        stopped_eval="def test_stop():\n    assert True\n    raise KeyboardInterrupt\n",
        one_eval="def test_a(): assert 1\n",
        test_plain="def test_plain(): pass",
    )
    evals.runpytest_subprocess("stopped_eval.py")
    (found,) = read(report)["conversations"]
    assert found["error"] == "interrupted: KeyboardInterrupt"
    assert evals.runpytest_subprocess("killed_eval.py").ret == -signal.SIGKILL
    assert not report.exists()
    for name in ("diagram", "killed", "stopped"):
        (evals.path / f"{name}_eval.py").unlink()
    # Only workers collect under -n2: how the run was asked for evaluations matters, not the error.
    for broken, arguments in [
        ("import nowhere\n", ["one_eval.py"]),
        ("def test_a(:\n", ["--eval"]),
        ("assert 0\n", ["--override-ini=python_files=*.py"]),
        ("import nowhere\n", ["--eval", "-n2"]),
        ("", ["test_plain.py", "--eval-results=eval-results.json"]),
    ]:
        (evals.path / "one_eval.py").write_text("def test_a(): assert 1\n")
        evals.runpytest_inprocess("one_eval.py")
        assert report.exists()
        (evals.path / "one_eval.py").write_text(broken)
        assert (evals.runpytest_inprocess(*arguments).ret == 0) == (not broken)
        assert not report.exists(), arguments


SHOWN = """
import pytest
from ci_agent_eval.contract.episode import SideUsage

@pytest.mark.episode(scenario_id="dup")
def test_a():
    for n in range(25): assert n < 0

@pytest.mark.episode(scenario_id="dup")
def test_b(): pytest.skip("no key")

@pytest.mark.episode(scenario_id="dup")
def test_c(episode):
    with episode.turn("hello") as turn:
        turn.reply("hi", cost_usd=0.25)
    episode.record_judge(SideUsage(calls=1, tokens={"input": 9}, cost_usd=0.5))
    assert True

@pytest.mark.episode(scenario_id="red \\x1b[31m alert")
def test_loud():
    assert False, "said \\x1b]0;title\\x07 and\\u202e more"
"""


def test_names_are_told_apart_lists_cut_texts_made_harmless_and_judges_counted(evals):
    evals.makepyfile(dup_eval=SHOWN)
    result = evals.runpytest_inprocess("dup_eval.py")
    found = read(evals.path / "eval-results.json")["conversations"]
    names = [conversation["name"] for conversation in found]
    assert names == ["dup [1]", "dup [3]", "red \x1b[31m alert"]
    assert len(found[0]["assertions"]) == 25
    result.stdout.fnmatch_lines(
        [
            "dup [[]1[]] *",
            "    and 5 more failed assertions, listed in *",
            "dup [[]2[]] *",
            "dup [[]3[]] *",
            "3 conversations: 1 passed (33.3 %)*; $0.7500 (judge: $0.5000)",
        ]
    )
    table = result.stdout.str().partition(" evaluations ")[2]
    assert table.count("dup_eval.py:6: ") == 20
    assert "red \N{REPLACEMENT CHARACTER}[31m alert" in table
    assert not any(character in table for character in "\x1b\x07\u202e")


def test_a_run_that_was_cut_short_says_so(evals):
    evals.makepyfile(a_eval="def test_a(): raise OSError\ndef test_b(): assert 1\n")
    for arguments in (["-x"], ["-x", "-n2"]):
        result = evals.runpytest_inprocess("a_eval.py", *arguments)
        result.stdout.fnmatch_lines(["* conversation*; partial: the run was cut short"])
    assert "partial" not in evals.runpytest_inprocess("a_eval.py").stdout.str()


def test_in_a_project_without_evaluations_it_is_nobodys_business(pytester):
    pytester.makepyfile("def test_one(): pass")
    (pytester.path / "eval-results.json").write_text(FOREIGN)
    assert pytester.runpytest_inprocess().ret == 0
    assert (pytester.path / "eval-results.json").read_text() == FOREIGN


def test_a_report_that_cannot_be_written_fails_the_run_and_says_so(evals):
    evals.makepyfile(
        blocks_eval="import pathlib\ndef test_a():\n    assert pathlib.Path('eval-results.json').write_text('mine')\n"
    )
    result = evals.runpytest_inprocess("blocks_eval.py")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: */eval-results.json: was not written by this program*"])
    assert (evals.path / "eval-results.json").read_text() == "mine"
