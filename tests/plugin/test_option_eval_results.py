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


def test_without_a_report_directory_it_is_written_here_and_the_table_says_the_same(evals, workers):
    result = evals.runpytest_inprocess("diagram_eval.py", workers)
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
    arguments = ["--episode-report-dir=report", "--eval-results=out/evals.json"]
    evals.runpytest_inprocess("diagram_eval.py", *arguments)
    inside = (evals.path / "report/eval-results.json").read_bytes()
    assert json.loads(inside)["totalConversations"] == 4
    assert (evals.path / "out/evals.json").read_bytes() == inside
    assert not (evals.path / "eval-results.json").exists()


def test_the_ini_setting_names_it_and_the_option_wins(evals):
    evals.makeini("[pytest]\neval_results = a.json\n")
    evals.runpytest_inprocess("diagram_eval.py")
    evals.runpytest_inprocess("diagram_eval.py", "--eval-results=b.json")
    assert (evals.path / "a.json").read_bytes() == (evals.path / "b.json").read_bytes()
    assert not (evals.path / "eval-results.json").exists()


def test_a_file_of_others_is_refused_before_anything_runs(evals):
    (evals.path / "eval-results.json").write_text(FOREIGN)
    for arguments in ([], ["--eval-results=eval-results.json"], ["-n2"]):
        result = evals.runpytest_inprocess("diagram_eval.py", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, arguments
        said = [line for line in result.errlines if "eval-results.json" in line]
        assert said == [
            (
                f"ERROR: eval results: {evals.path}/eval-results.json: was not written by this program and "
                "would be overwritten; move it, or name another file with --eval-results"
            )
        ]
        assert (evals.path / "eval-results.json").read_text() == FOREIGN
        assert "passed" not in result.stdout.str()


def test_in_a_project_without_evaluations_it_is_nobodys_business(pytester):
    pytester.makepyfile("def test_one(): pass")
    (pytester.path / "eval-results.json").write_text(FOREIGN)
    assert pytester.runpytest_inprocess().ret == 0
    assert (pytester.path / "eval-results.json").read_text() == FOREIGN


def test_without_an_evaluation_that_runs_nothing_is_written(evals):
    for arguments in (["--collect-only"], ["--eval-strict"], ["-k", "nothing"]):
        evals.runpytest_inprocess("diagram_eval.py", *arguments)
        assert not (evals.path / "eval-results.json").exists(), arguments


def test_a_former_report_does_not_survive_a_run_that_is_killed(evals):
    evals.runpytest_inprocess("diagram_eval.py")
    assert (evals.path / "eval-results.json").exists()
    evals.makepyfile(killed_eval="import os\ndef test_kill():\n    os.kill(os.getpid(), 9)\n")
    assert evals.runpytest_subprocess("killed_eval.py").ret == -signal.SIGKILL
    assert not (evals.path / "eval-results.json").exists()


def test_nor_one_that_cannot_be_collected(evals):
    # Only workers collect under -n2: how the run was asked for evaluations matters, not the error.
    for asked, broken, workers in [
        ("diagram_eval.py", "import nowhere\n", "-n0"),
        ("--eval", "def test_a(:\n", "-n0"),
        ("--override-ini=python_files=*.py", "assert 0\n", "-n0"),
        ("--eval", "import nowhere\n", "-n2"),
    ]:
        (evals.path / "diagram_eval.py").write_text("def test_a(): assert 1\n")
        evals.runpytest_inprocess("diagram_eval.py")
        assert (evals.path / "eval-results.json").exists()
        (evals.path / "diagram_eval.py").write_text(broken)
        assert evals.runpytest_inprocess(asked, workers).ret != 0
        assert not (evals.path / "eval-results.json").exists(), (broken, workers)


def test_a_run_that_was_cut_short_says_so(evals):
    evals.makepyfile(a_eval="def test_a(): raise OSError\ndef test_b(): assert 1\n")
    for arguments in (["-x"], ["-x", "-n2"]):
        result = evals.runpytest_inprocess("a_eval.py", *arguments)
        result.stdout.fnmatch_lines(["* conversation*; partial: the run was cut short"])
    assert "partial" not in evals.runpytest_inprocess("a_eval.py", "-n2").stdout.str()


def test_conversations_of_one_name_are_told_apart_and_long_lists_cut(evals):
    evals.makepyfile(
        dup_eval="""
        import pytest

        @pytest.mark.episode(scenario_id="dup")
        def test_a():
            for n in range(25): assert n < 0

        @pytest.mark.episode(scenario_id="dup")
        def test_b(): pytest.skip("no key")

        @pytest.mark.episode(scenario_id="dup")
        def test_c(): assert 1
        """
    )
    result = evals.runpytest_inprocess("dup_eval.py")
    found = read(evals.path / "eval-results.json")["conversations"]
    assert [conversation["name"] for conversation in found] == ["dup [1]", "dup [3]"]
    assert len(found[0]["assertions"]) == 25
    result.stdout.fnmatch_lines(
        [
            "dup [[]1[]] *",
            "    and 5 more failed assertions, listed in *",
            "dup [[]2[]] *",
            "dup [[]3[]] *",
        ]
    )
    assert result.stdout.str().count("dup_eval.py:5: ") == 20


def test_nor_one_in_which_nothing_was_measured_though_it_was_asked_for(evals):
    evals.runpytest_inprocess("diagram_eval.py", "--eval-results=a.json")
    evals.makepyfile("def test_plain(): pass")
    evals.runpytest_inprocess("--eval-results=a.json")
    assert not (evals.path / "a.json").exists()


ENDED = "the process ended before the episode did"
KILLED = [
    ("killed_eval.py::test_kill", False, ENDED),
    ("killed_eval.py::test_lives", True, None),
    ("killed_eval.py::test_no_report_at_all", False, ENDED),
]


# Before it could report anything a worker leaves its conversation in the report directory only.
@pytest.mark.parametrize(
    ("arguments", "folder", "expected"),
    [
        ("--deselect=killed_eval.py::test_no_report_at_all", ".", KILLED[:2]),
        ("--episode-report-dir=report", "report", KILLED),
    ],
)
def test_the_conversation_of_a_killed_worker_is_in_it(evals, arguments, folder, expected):
    evals.makepyfile(
        killed_eval="""
        import os
        import pytest

        def test_kill():
            assert True
            os.kill(os.getpid(), 9)

        def test_lives():
            assert True

        @pytest.fixture
        def agent():
            os.kill(os.getpid(), 9)

        def test_no_report_at_all(agent):
            assert True
        """
    )
    evals.runpytest_subprocess("killed_eval.py", "-n1", arguments)
    found = read(evals.path / folder / "eval-results.json")["conversations"]
    assert [(c["name"], c["passed"], c.get("error")) for c in found] == expected


def test_one_that_ctrl_c_ended_is_in_it(evals):
    evals.makepyfile(
        stopped_eval="def test_stop():\n    assert True\n    raise KeyboardInterrupt\n"
    )
    evals.runpytest_subprocess("stopped_eval.py")
    (found,) = read(evals.path / "eval-results.json")["conversations"]
    assert found["error"] == "interrupted: KeyboardInterrupt"


def test_a_report_that_cannot_be_written_fails_the_run_and_says_so(evals):
    evals.makepyfile(
        blocks_eval="import pathlib\ndef test_a():\n    assert pathlib.Path('eval-results.json').write_text('mine')\n"
    )
    result = evals.runpytest_inprocess("blocks_eval.py")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: */eval-results.json: was not written by this program*"])
    assert (evals.path / "eval-results.json").read_text() == "mine"


def test_a_place_that_cannot_be_written_to_is_said_before_anything_runs(evals):
    (evals.path / "taken").write_text("mine")
    result = evals.runpytest_inprocess("diagram_eval.py", "--eval-results=taken/a.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "passed" not in result.stdout.str()
    result.stderr.fnmatch_lines(["ERROR: eval results: */taken/a.json: cannot be written (*"])


def test_text_of_an_agent_does_not_steer_the_terminal(evals):
    evals.makepyfile(
        loud_eval="""
        import pytest

        @pytest.mark.episode(scenario_id="red \\x1b[31m alert")
        def test_loud():
            assert False, "said \\x1b]0;title\\x07 and\\u202e more"
        """
    )
    shown = evals.runpytest_inprocess("loud_eval.py").stdout.str()
    table = shown.partition(" evaluations ")[2]
    assert "red \N{REPLACEMENT CHARACTER}[31m alert" in table
    assert not any(character in table for character in "\x1b\x07\u202e")


def test_judging_is_told_beside_the_cost(evals):
    evals.makepyfile(
        judged_eval="""
        from ci_agent_eval.contract.trajectory import TokenUsage

        def test_judged(episode):
            with episode.turn("hello") as turn:
                turn.reply("hi", cost_usd=0.25)
            episode.record_judge(TokenUsage(input=9), 0.5)
            assert True
        """
    )
    result = evals.runpytest_inprocess("judged_eval.py")
    result.stdout.fnmatch_lines(
        ["1 conversation: 1 passed (100.0 %)*; $0.7500 (of which judge $0.5000)"]
    )
