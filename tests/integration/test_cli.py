"""The command line as a person meets it: real processes, real files, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.processes import run_agent_eval, run_python, started_python, wait_for

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/refund_desk"


@pytest.fixture
def agent_eval(tmp_path):
    def run(*arguments, cwd=tmp_path, **environ):
        return run_agent_eval(*arguments, cwd=cwd, **environ)

    return run


@pytest.fixture
def desk(tmp_path):
    """A copy of the example, to run and to mend."""
    shutil.copytree(EXAMPLE, tmp_path / "desk", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "desk"


def verdict(folder: Path):
    return json.loads((folder / "agent-eval-report/verdict.json").read_text())


def mend(desk: Path):
    agent = desk / "agent.py"
    text = agent.read_text()
    text = text.replace(' and "urgent" not in message', "")
    text = text.replace(
        'orders = [self._use(reply, "lookup_order", order_id=order_id) for order_id in ids]',
        'orders = [self._use(reply, "lookup_order", order_id=ids[-1])]',
    )
    agent.write_text(text)


def test_the_example_fails_for_its_two_reasons(agent_eval, desk, tmp_path):
    done = agent_eval("run", "desk")
    assert done.returncode == 1, done.stderr
    assert "refund_over_limit  0/1  asks a manager before refunding over $500" in done.stdout
    assert "refund_by_email  tool calls (hard)  6, limit 4 (+50 %)" in done.stdout
    shown = {(r["kind"], r["scenario_id"]) for r in verdict(tmp_path)["verdict"]["reasons"]}
    assert shown == {("scenario", "refund_over_limit"), ("budget", "refund_by_email")}
    folder = tmp_path / "agent-eval-report"
    assert {path.name for path in folder.iterdir()} == {
        ".gitignore",
        "annotations.json",
        "comment.md",
        "episodes",
        "junit.xml",
        "report.html",
        "results.json",
        "session.json",
        "summary.md",
        "verdict.json",
    }


def test_the_mended_example_passes(agent_eval, desk, tmp_path):
    mend(desk)
    done = agent_eval("run", "desk")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("Agent evals passed: 3 of 3 required scenarios, 3 episodes\n")


def test_the_same_results_are_the_same_bytes_for_any_order_and_worker_count(agent_eval, desk):
    def bytes_of(*pytest_args, **environ):
        agent_eval("run", "desk", "--", *pytest_args, **environ)
        folder = desk.parent / "agent-eval-report"
        names = (
            "results.json",
            "verdict.json",
            "comment.md",
            "annotations.json",
            "summary.md",
            "report.html",
        )
        return {name: (folder / name).read_bytes() for name in names}

    first = bytes_of(PYTHONHASHSEED="1")
    assert first == bytes_of("-n", "2", PYTHONHASHSEED="2", TZ="Asia/Tokyo")
    assert first == bytes_of(PYTEST_ADDOPTS="-p randomly -p no:cacheprovider", LC_ALL="C")


def test_a_report_of_a_report_s_files_says_the_same(agent_eval, desk, tmp_path):
    agent_eval("run", "desk")
    again = agent_eval("report", "--results", "agent-eval-report", "--report-dir", "again")
    assert again.returncode == 1
    for name in ("results.json", "comment.md", "annotations.json", "verdict.json", "report.html"):
        first, second = tmp_path / "agent-eval-report" / name, tmp_path / "again" / name
        assert first.read_bytes() == second.read_bytes(), name


def test_only_chosen_tests_run_after_the_dashes(agent_eval, desk, tmp_path):
    done = agent_eval("run", "desk", "--", "-k", "confirmation")
    assert done.returncode == 0
    assert verdict(tmp_path)["counts"]["episodes"]["passed"] == 1


def test_the_summary_as_json_counts_each_file(agent_eval, desk):
    agent_eval("run", "desk")
    done = agent_eval("report", "--results", "agent-eval-report", "--format", "json")
    sources = json.loads(done.stdout)["summary"]["sources"]
    assert [(s["kind"], s["cases"], s["failures"], s["skipped"]) for s in sources] == [
        ("junit", 3, 2, 0),
        ("episodes", 3, 1, 0),
    ]


SLOW_SUITE = """
import os, signal, pytest

@pytest.mark.episode(scenario_id="first")
def test_first(episode):
    with episode.turn("hello") as turn:
        turn.reply("hello", source="scripted")
    assert episode.turns

@pytest.mark.episode(scenario_id="second")
def test_second(episode):
    os.kill({target}, signal.SIGKILL)
    signal.pause()

@pytest.mark.episode(scenario_id="third")
def test_third(episode):
    pass
"""


def test_a_suite_that_is_killed_half_way_is_reported_as_interrupted(agent_eval, tmp_path):
    (tmp_path / "test_slow.py").write_text(SLOW_SUITE.format(target="os.getpid()"))
    done = agent_eval("run", "test_slow.py")
    assert done.returncode == 1
    document = verdict(tmp_path)
    assert document["conclusion"] == "failure"
    assert "interrupted" in document["headline"]
    assert document["counts"]["episodes"] == {"passed": 1, "failed": 0, "error": 1, "skipped": 0}
    assert "interrupted" in [f["kind"] for f in document["summary"]["findings"]]


def ended_by(number: signal.Signals, code: int, suite: str, *, folder: Path) -> None:
    """Run a suite until it says that it is ready, and end it."""
    with started_python("-m", "ci_agent_eval", "run", suite, "--", "-s", cwd=folder) as process:
        wait_for(process, "READY")
        process.send_signal(number)
        rest = process.communicate(timeout=60)[0]
    assert process.returncode == code, rest


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_report_of_what_finished_and_its_exit_code(tmp_path, number, code):
    suite = SLOW_SUITE.replace("os.kill({target}, signal.SIGKILL)", "print('READY', flush=True)")
    (tmp_path / "test_slow.py").write_text(suite)
    ended_by(number, code, "test_slow.py", folder=tmp_path)
    document = verdict(tmp_path)
    assert document["conclusion"] == "failure"
    assert document["counts"]["episodes"]["passed"] == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_the_first_test_is_an_interruption(tmp_path, number, code):
    (tmp_path / "conftest.py").write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print('READY', flush=True)\n"
        "signal.pause()\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it(episode): pass\n")
    ended_by(number, code, ".", folder=tmp_path)
    (finding,) = verdict(tmp_path)["summary"]["findings"]
    assert (finding["kind"], finding["message"]) == (
        "interrupted",
        f"{number.name} ended it before it had begun",
    )


def test_a_suite_that_cannot_be_collected_fails_and_says_so(agent_eval, tmp_path):
    (tmp_path / "test_broken.py").write_text("import nothing_of_that_name\n")
    done = agent_eval("run", "test_broken.py")
    assert done.returncode == 1
    kinds = {f["kind"] for f in verdict(tmp_path)["summary"]["findings"]}
    assert "collection_error" in kinds


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothere"], "file or directory not found: nothere"),
        (["desk/test_refunds.py::test_nothere"], "not found: "),
        (["desk", "--", "--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["desk", "--", "--color=yes", "-n", "x"], "argument -n/--numprocesses: invalid"),
        (["desk", "--", "-p", "no_such_plugin"], "No module named 'no_such_plugin'"),
    ],
)
def test_what_pytest_cannot_use_is_wrong_use(agent_eval, desk, tmp_path, arguments, sentence):
    done = agent_eval("run", *arguments)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    document = verdict(tmp_path)
    assert document["conclusion"] == "failure"
    (finding,) = document["summary"]["findings"]
    assert finding["kind"] == "collection_error"
    assert sentence in finding["message"]


WAITS = """
def test_waits(episode):
    with episode.turn("Hi") as turn:
        answer = open("gate").read()
        turn.reply(answer)
    assert answer == "go"
"""


def test_two_runs_do_not_write_into_one_folder(agent_eval, tmp_path):
    (tmp_path / "test_waits.py").write_text(WAITS)
    os.mkfifo(tmp_path / "gate")
    arguments = ("-m", "ci_agent_eval", "run", "test_waits.py", "--", "-s")
    with started_python(*arguments, cwd=tmp_path) as first:
        # Opening the pipe waits for the test that reads it.
        with (tmp_path / "gate").open("w") as gate:
            for wrong in (
                agent_eval("run", "test_waits.py"),
                agent_eval("report", "--junit", "x.xml"),
            ):
                assert wrong.returncode == 2, wrong.stdout
                assert "another run is writing its results there" in wrong.stderr
                assert wrong.stderr.count("\n") == 1
            pytest_alone = run_python(
                *("-m", "pytest", "test_waits.py", "--episode-report-dir=agent-eval-report"),
                cwd=tmp_path,
            )
            assert pytest_alone.returncode == pytest.ExitCode.USAGE_ERROR
            gate.write("go")
        output, _ = first.communicate()
    assert first.returncode == 0, output
    assert verdict(tmp_path)["counts"]["episodes"]["passed"] == 1


LONG = """
def test_lists():
    assert list(range(60)) == [*range(7), "x", *range(8, 60)]

def test_texts():
    assert "a\\n" * 30 == "a\\n" * 29 + "b\\n"

def test_dicts():
    assert {str(i): i for i in range(30)} == {str(i): i + (i == 3) for i in range(30)}

def test_episode(episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello")
    assert list(range(60)) == [*range(7), "x", *range(8, 60)]
"""


def test_failing_tests_are_told_in_the_same_bytes_wherever_they_run(agent_eval, tmp_path):
    (tmp_path / "test_long.py").write_text(LONG)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef episode_clock(): return lambda: 0.0\n"
    )
    told = set()
    for number, (arguments, environ) in enumerate(
        [([], {}), ([], {"CI": "true"}), (["-vv"], {}), (["-q"], {"CI": "1"})]
    ):
        folder = tmp_path / f"r{number}"
        done = agent_eval(
            "run", "test_long.py", "--report-dir", folder.name, "--", *arguments, **environ
        )
        assert done.returncode == 1
        names = ("verdict.json", "comment.md", "annotations.json", "results.json")
        texts = [(folder / name).read_text().replace(folder.name, "r") for name in names]
        told.add(re.sub(r'("(?:duration_s|wall_time_s|time)": ?)[0-9.]+', r"\1 0", "".join(texts)))
    assert len(told) == 1


def test_a_conftest_that_cannot_be_imported_is_no_wrong_use(agent_eval, tmp_path):
    (tmp_path / "conftest.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = agent_eval("run", "test_it.py")
    assert done.returncode == 1
    assert verdict(tmp_path)["conclusion"] == "failure"


def test_a_suite_without_episodes_is_no_evidence(agent_eval, tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    done = agent_eval("run", "test_plain.py")
    assert done.returncode == 1
    reasons = verdict(tmp_path)["verdict"]["reasons"]
    assert "no_evidence" in {reason["kind"] for reason in reasons}


def test_a_former_report_never_stands_in_for_a_run_that_failed_to_start(agent_eval, desk, tmp_path):
    mend(desk)
    assert agent_eval("run", "desk").returncode == 0
    assert agent_eval("run", "desk", "--", "--no-such-option").returncode == 2
    assert verdict(tmp_path)["conclusion"] == "failure"


def test_junit_alone_is_judged(agent_eval, tmp_path):
    lying = '<testsuite tests="2" failures="0"><testcase name="a"/><testcase name="b">'
    (tmp_path / "x.xml").write_text(lying + '<failure message="no"/></testcase></testsuite>')
    done = agent_eval("report", "--junit", "*.xml")
    assert done.returncode == 1
    assert "1 of 2 tests failed" in done.stdout


def test_no_results_is_a_failure_with_a_report(agent_eval, tmp_path):
    done = agent_eval("report", "--results", "nowhere/*.json")
    assert done.returncode == 1
    assert "nowhere/*.json" in (tmp_path / "agent-eval-report/comment.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "config", "sentence"),
    [
        (
            ["report"],
            "",
            "agent-eval: no result files were named; give --results, --junit, or both",
        ),
        (["report", "--results", ""], "", "agent-eval: '' names no result files; give a file"),
        (
            ["report", "--junit", "x"],
            "[gate]\nmin_pas = 1\n",
            "agent-eval: agent-eval.toml:2: gate",
        ),
        (["report", "--config", "no.toml"], "", "no.toml: cannot be read"),
        (["run", "--min-pass-rate", "2"], "", "option --min-pass-rate: Input should be less than"),
        (["run", "--nonsense"], "", "No such option"),
        (["publish"], "", "agent-eval-report/verdict.json: cannot be read"),
        (["report", "--junit", "x"], "pytest_args = 'x'\n", "toml:1: pytest_args: must be a list"),
        (["run", "--python", "no-such-python"], "", "no-such-python cannot run the suite"),
    ],
)
def test_wrong_use_is_exit_2_and_one_sentence(agent_eval, tmp_path, arguments, config, sentence):
    if config:
        (tmp_path / "agent-eval.toml").write_text(config)
    done = agent_eval(*arguments)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_json_is_told_with_file_and_line_and_the_rest_is_reported(agent_eval, tmp_path):
    good = '{"scenario_id": "a", "outcome": "passed"}'
    (tmp_path / "e.jsonl").write_text(f"{good}\n" + '{"scenario_id": "b", "budgets": {"x": 1}}\n')
    done = agent_eval("report", "--results", "e.jsonl")
    assert done.returncode == 1
    assert "e.jsonl:2" in done.stdout
    assert "unknown key 'x'" in " ".join(done.stdout.split())


def test_init_writes_a_suite_that_passes_and_never_overwrites(agent_eval, tmp_path):
    (tmp_path / ".git").mkdir()
    assert agent_eval("init").returncode == 0
    assert agent_eval("run", "tests/episodes").returncode == 0
    workflow = tmp_path / ".github/workflows/agent-eval.yml"
    workflow.write_text("mine")
    again = agent_eval("init")
    assert again.returncode == 2
    assert "exists already and was left as it is" in again.stderr
    assert workflow.read_text() == "mine"


@pytest.mark.parametrize(
    ("file", "line"),
    [("requirements.txt", "pip install -r requirements.txt"), ("pyproject.toml", "pip install .")],
)
def test_init_fits_the_workflow_to_the_repository(agent_eval, tmp_path, file, line):
    (tmp_path / ".git").mkdir()
    (tmp_path / file).touch()
    agent_eval("init")
    assert line in (tmp_path / ".github/workflows/agent-eval.yml").read_text()


def test_the_page_is_printed_as_it_was_written(agent_eval, desk, tmp_path):
    mend(desk)
    agent_eval("run", "desk")
    done = agent_eval("report", "--results", "agent-eval-report", "--format", "html")
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "agent-eval-report/report.html").read_text()
    assert '"scenario":0,"outcome":"passed"' in done.stdout


def test_init_without_anything_to_install_or_without_a_repository(agent_eval, tmp_path):
    refused = agent_eval("init")
    assert refused.returncode == 2
    assert "is no root of a git repository" in refused.stderr
    (tmp_path / ".git").mkdir()
    agent_eval("init")
    assert "install" not in (tmp_path / ".github/workflows/agent-eval.yml").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "comment.md",
        "summary.md",
        "verdict.json",
        "annotations.json",
        "report.html",
        "eval-results.json",
    ],
)
def test_files_of_others_are_never_overwritten_nor_removed(agent_eval, desk, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("my notes")
    done = agent_eval("run", "desk", "--report-dir", "mine")
    assert done.returncode == 2
    assert f"{name}: was not written by this program" in done.stderr
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "my notes"


def test_a_report_dir_that_is_a_file_is_told_so(agent_eval, desk, tmp_path):
    (tmp_path / "taken").write_text("")
    for arguments in (["run", "desk"], ["report", "--junit", "*.xml"]):
        done = agent_eval(*arguments, "--report-dir", "taken")
        assert done.returncode == 2
        assert "taken: a file is in the way" in done.stderr


def test_a_run_that_is_killed_leaves_no_verdict_of_the_run_before(desk, agent_eval, tmp_path):
    mend(desk)
    agent_eval("run", "desk")
    (tmp_path / "test_slow.py").write_text(SLOW_SUITE.format(target="os.getppid()"))
    assert agent_eval("run", "test_slow.py").returncode == -signal.SIGKILL
    assert not (tmp_path / "agent-eval-report/verdict.json").exists()
    assert agent_eval("report", "--results", "agent-eval-report").returncode == 1


def test_the_schema_is_printed(agent_eval):
    checked_in = (ROOT / "ci_agent_eval/contract/schema.json").read_text()
    assert agent_eval("schema").stdout == checked_in


def test_secrets_of_the_environment_reach_no_output(agent_eval, tmp_path):
    secret = "correct-horse-battery"
    (tmp_path / "test_leak.py").write_text(
        "import os\n"
        "def test_leak(episode):\n"
        "    print(os.environ['SHOP_API_KEY'])\n"
        "    with episode.turn(os.environ['SHOP_API_KEY']) as turn:\n"
        "        turn.reply('ghp_' + 'a' * 36)\n"
        "    assert 'x' == os.environ['SHOP_API_KEY']\n"
    )
    done = agent_eval("run", "test_leak.py", SHOP_API_KEY=secret)
    assert done.returncode == 1
    texts = [done.stdout, done.stderr]
    texts += [p.read_text() for p in (tmp_path / "agent-eval-report").rglob("*") if p.is_file()]
    assert not [text for text in texts if secret in text or "ghp_aaaa" in text]


def test_results_of_an_interrupted_run_are_no_pass_wherever_they_are_carried(agent_eval, tmp_path):
    (tmp_path / "test_stop.py").write_text(
        "import pytest\n"
        "def test_first(episode):\n"
        "    with episode.turn('hello') as turn:\n"
        "        turn.reply('hello', source='scripted')\n"
        "    assert episode.turns\n"
        "def test_second(episode):\n"
        "    pytest.exit('enough', returncode=0)\n"
    )
    assert agent_eval("run", "test_stop.py").returncode == 1
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "agent-eval-report/results.json", tmp_path / "alone")
    for source, target in [("alone", "b"), ("agent-eval-report", "c"), ("b", "d"), ("c", "e")]:
        done = agent_eval("report", "--results", source, "--report-dir", target)
        assert done.returncode == 1, (source, done.stdout)


def test_a_run_inside_the_report_folder_is_not_this_run_s(agent_eval, desk, tmp_path):
    mend(desk)
    assert agent_eval("run", "desk", "--report-dir", "out/old").returncode == 0
    assert agent_eval("run", "desk", "--report-dir", "out", "--", "-k", "none").returncode == 1


PLAIN_AND_EPISODE = """
def test_episode(episode):
    with episode.turn("hello") as turn:
        turn.reply("hello", source="scripted")
    assert episode.turns

def test_plain():
    assert {passes}
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 1), (["--", "--junitxml=other.xml"], 1), (["--", "-p", "no:junitxml"], 2)],
)
def test_a_failing_plain_test_fails_whatever_pytest_is_told(agent_eval, tmp_path, arguments, code):
    (tmp_path / "test_both.py").write_text(PLAIN_AND_EPISODE.format(passes=False))
    assert agent_eval("run", "test_both.py", *arguments).returncode == code
    assert verdict(tmp_path)["conclusion"] == "failure"


def test_a_status_of_pytest_that_nothing_explains_fails(agent_eval, tmp_path):
    (tmp_path / "test_both.py").write_text(PLAIN_AND_EPISODE.format(passes=True))
    (tmp_path / "conftest.py").write_text(
        "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
    )
    done = agent_eval("run", "test_both.py")
    assert done.returncode == 1
    assert "pytest ended with status 1" in " ".join(done.stdout.split())
    (tmp_path / "conftest.py").unlink()
    assert agent_eval("run", "test_both.py").returncode == 0


def test_subtests_that_pass_are_no_finding(agent_eval, tmp_path):
    (tmp_path / "test_sub.py").write_text(
        "def test_sub(episode, subtests):\n"
        "    with episode.turn('hello') as turn:\n"
        "        turn.reply('hello', source='scripted')\n"
        "    for number in range(3):\n"
        "        with subtests.test(number=number):\n"
        "            assert number < 3\n"
    )
    done = agent_eval("run", "test_sub.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("Agent evals passed: 1 of 1 required scenario, 1 episode\n")


def test_commands_of_the_suite_stay_text_in_a_workflow_s_log(agent_eval, tmp_path):
    (tmp_path / "event.json").write_text('{"repository": {"full_name": "o/r"}}')
    (tmp_path / "test_loud.py").write_text(
        "def test_loud():\n    assert '''\n::error::x\n''' == ''\n"
    )
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_SHA": "a" * 40,
    }
    ran = agent_eval("run", "test_loud.py", **environ)
    assert ran.stdout.startswith("::stop-commands::")
    shown = agent_eval(
        "report", "--results", "agent-eval-report", "--format", "markdown", **environ
    )
    assert not [line for line in shown.stdout.splitlines() if line.lstrip().startswith("::")]


def test_a_limit_that_leaves_out_a_plain_test_is_no_pass(agent_eval, tmp_path):
    (tmp_path / "test_stop.py").write_text(
        "import pytest\n"
        "def test_a(episode):\n"
        "    with episode.turn('hello') as turn:\n"
        "        turn.reply('hello', source='scripted')\n"
        "    assert episode.turns\n"
        "@pytest.mark.episode(gate='advisory')\n"
        "def test_b(episode):\n"
        "    assert 0\n"
        "def test_c():\n"
        "    assert 0\n"
    )
    done = agent_eval("run", "test_stop.py", "--", "-x")
    assert done.returncode == 1, done.stdout
    assert "pytest stopped early at a limit of its own" in " ".join(done.stdout.split())
