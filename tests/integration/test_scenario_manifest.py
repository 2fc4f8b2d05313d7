"""Known scenarios that disappear: real runs, each red for its own reason, everywhere it is told."""

from __future__ import annotations

import json

import pytest

from tests.processes import run_agent_eval

MANIFEST = """\
[required]
"five" = "suite/test_desk.py"
"refund" = "suite/test_money.py"
"search" = "suite/test_desk.py"
"""
MONEY = """
import pytest

@pytest.mark.episode(scenario_id="refund")
def test_refund(episode):
    with episode.turn("refund") as turn:
        turn.reply("Done.", source="scripted")
    assert episode.turns
"""
DESK = """
import pytest

@pytest.mark.episode(scenario_id="search")
def test_search(episode):
    with episode.turn("search") as turn:
        turn.reply("Found.", source="scripted")
    assert episode.turns

@pytest.mark.episode(scenario_id="five", iterations=5)
def test_five(episode):
    with episode.turn("again") as turn:
        turn.reply("Again.", source="scripted")
    assert episode.turns
"""
DESELECTING = """
def pytest_collection_modifyitems(config, items):
    gone = [item for item in items if "refund" in item.name]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]
"""
FILTERING = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "refund" not in item.name]
"""
FILE_SKIPPED = "refund: did not run, its file was skipped: "


class Suite:
    """A suite with its manifest, and what `agent-eval` says of it."""

    def __init__(self, folder):
        self.folder = folder
        (folder / ".git").mkdir()
        (folder / "suite").mkdir()
        self.write("test_money.py", MONEY)
        self.write("test_desk.py", DESK)
        self.manifest(MANIFEST)

    def write(self, name, text):
        (self.folder / "suite" / name).write_text(text)

    def manifest(self, text):
        (self.folder / "agent-eval-scenarios.toml").write_text(text)

    @property
    def listed(self):
        return (self.folder / "agent-eval-scenarios.toml").read_text()

    def agent_eval(self, *arguments, **environ):
        return run_agent_eval(*arguments, cwd=self.folder, **environ)

    @property
    def report(self):
        return self.folder / "agent-eval-report"

    @property
    def verdict(self):
        return json.loads((self.report / "verdict.json").read_text())

    @property
    def reasons(self):
        return [(one["kind"], one["scenario_id"]) for one in self.verdict["verdict"]["reasons"]]

    @property
    def comment(self):
        return (self.report / "comment.md").read_text()


@pytest.fixture
def suite(tmp_path):
    return Suite(tmp_path)


def flat(text):
    """Return a text of the terminal without its line breaks, as one searches it."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (
            "test_money.py",
            f"import pytest\npytest.importorskip('not_there')\n{MONEY}",
            f"{FILE_SKIPPED}could not import 'not_there': No module named 'not_there'",
        ),
        ("conftest.py", DESELECTING, "refund: did not run: removed by suite/conftest.py"),
        ("test_money.py", "", "refund: did not run"),
    ],
    ids=["importorskip", "deselected", "deleted"],
)
def test_a_required_scenario_that_disappears_is_red_by_name(suite, file, text, told):
    suite.write(file, text)
    done = suite.agent_eval("run", "suite")
    assert done.returncode == 1
    assert told in flat(done.stdout)
    assert "1 known scenario did not run" in flat(done.stdout)
    assert suite.reasons == [("missing_scenario", "refund")]
    assert "<code>refund</code>: did not run" in suite.comment


CASES = """
import pytest

@pytest.mark.parametrize("order", [{"total": 1}, {"total": 99}])
@pytest.mark.episode(scenario_id="refund", iterations=2)
def test_refund(episode, order):
    with episode.turn("refund") as turn:
        turn.reply("Done.", source="scripted")
    assert episode.turns
"""
LISTED_CASES = """\
[required]
"five" = "suite/test_desk.py"
"refund" = { file = "suite/test_money.py", cases = [
  "[order={'total': 1}]",
  "[order={'total': 99}]",
] }
"search" = "suite/test_desk.py"
"""


def test_a_swapped_case_is_red_until_the_manifest_is_updated(suite):
    suite.write("test_money.py", CASES)
    suite.agent_eval("scenarios", "--write", "suite")
    assert suite.listed == LISTED_CASES

    suite.write("test_money.py", CASES.replace("99", "2"))
    assert suite.agent_eval("run", "suite").returncode == 1
    assert suite.reasons == [("missing_cases", "refund")]
    (reason,) = suite.verdict["verdict"]["reasons"]
    assert reason["message"] == (
        "1 case of agent-eval-scenarios.toml:3 did not run: [order={'total': 99}]; "
        "bring it back, or remove it with `agent-eval scenarios --write`"
    )
    assert "<code>refund</code>: 1 case did not run: <code>[order={&#x27;total&#x27;: 99}]" in (
        suite.comment
    )
    assert suite.agent_eval("run", "suite", "--", "-k", "order0").returncode == 0
    suite.agent_eval("scenarios", "--write", "suite", "--", "-k", "order0")
    assert suite.listed == LISTED_CASES

    written = suite.agent_eval("scenarios", "--write", "suite")
    assert written.stdout == (
        """- [required] "refund": "[order={'total': 99}]"\n"""
        """+ [required] "refund": "[order={'total': 2}]"\n"""
        "wrote agent-eval-scenarios.toml\n"
    )
    assert suite.agent_eval("run", "suite").returncode == 0
    assert suite.verdict["verdict"]["warnings"] == []


def test_settings_define_the_suite(suite):
    (suite.folder / "agent-eval.toml").write_text(
        'paths = ["suite"]\npytest_args = ["-k", "not refund"]'
    )
    suite.manifest(MANIFEST.replace('"refund" = "suite/test_money.py"\n', ""))
    assert suite.agent_eval("run").returncode == 0
    summary = suite.verdict["summary"]
    assert (summary["known"]["compared"], summary["restrictions"]) == (2, [])
    assert suite.verdict["verdict"]["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "restriction"),
    [
        (("suite/test_desk.py::test_search",), "suite/test_desk.py::test_search"),
        (("suite", "--", "--deselect", "suite/test_money.py"), "--deselect suite/test_money.py"),
    ],
    ids=["node id", "deselect"],
)
def test_a_run_restricted_on_purpose_is_partial(suite, arguments, restriction):
    done = suite.agent_eval("run", *arguments)
    assert done.returncode == 0, done.stdout
    assert f"restricted by {restriction}" in flat(done.stdout)
    assert "a partial run" in flat(done.stdout)
    assert suite.verdict["summary"]["restrictions"] == [restriction]
    event = suite.folder / "event.json"
    event.write_text("{}")
    done = suite.agent_eval("publish", "--dry-run", GITHUB_EVENT_PATH=str(event),
                            GITHUB_EVENT_NAME="push", GITHUB_REPOSITORY="octo/shop",
                            GITHUB_SHA="a" * 40)  # fmt: skip
    assert done.returncode == 2
    assert f"this run covered only part of the suite ({restriction})" in done.stderr


def test_only_the_report_of_all_shards_compares(suite):
    suite.write("conftest.py", FILTERING)
    for shard in ("1/2", "2/2"):
        folder = f"shards/{shard[0]}"
        done = suite.agent_eval("run", "suite", "--shard", shard, "--report-dir", folder)
        assert done.returncode == 0, done.stdout
    whole = suite.agent_eval("report", "--results", "shards/*")
    assert whole.returncode == 1
    assert suite.reasons == [("missing_scenario", "refund")]
    assert "refund: did not run: a hook removed it" in flat(whole.stdout)


def test_a_manifest_that_is_named_has_to_be_there(suite):
    done = suite.agent_eval("run", "suite", "--scenario-manifest", "other.toml")
    assert done.returncode == 2
    assert done.stderr == (
        "agent-eval: other.toml: cannot be read (No such file or directory); check the setting "
        "scenario_manifest, or write the file with `agent-eval scenarios --write`\n"
    )


def test_text_of_a_scenario_does_not_control_the_terminal(suite):
    suite.write("test_new.py", MONEY.replace('"refund"', r'"new\u202e\x9b2J\x1b[2J"'))
    shown = suite.agent_eval("scenarios", "suite")
    assert shown.returncode == 1
    assert '+ [required] "new' in shown.stdout
    assert not set(shown.stdout) & {"\u202e", "\x9b", "\x1b"}


def test_scenarios_shows_the_difference_and_writes_it(suite):
    suite.write("test_money.py", MONEY.replace('"refund"', '"refund_v2", was=["refund"]'))
    suite.write("test_new.py", MONEY.replace('"refund"', '"voucher", gate="advisory"'))
    suite.manifest(MANIFEST.replace('"search"', '# asked for often\n"search"') + '"old" = ""\n')
    shown = suite.agent_eval("scenarios", "suite")
    assert (shown.returncode, shown.stdout) == (
        1,
        """\
- [required] "old" = ""
- [required] "refund" = "suite/test_money.py"
+ [required] "refund_v2" = "suite/test_money.py" (was 'refund')
+ [advisory] "voucher" = "suite/test_new.py"
agent-eval-scenarios.toml differs; `agent-eval scenarios --write` updates it
""",
    )
    written = suite.agent_eval("scenarios", "suite", "--write")
    assert written.returncode == 0
    assert (
        suite.listed
        == """\
[required]
"five" = "suite/test_desk.py"
"refund_v2" = "suite/test_money.py"
# asked for often
"search" = "suite/test_desk.py"

[advisory]
"voucher" = "suite/test_new.py"
"""
    )
    again = suite.agent_eval("scenarios", "suite", "--write")
    assert again.stdout == "agent-eval-scenarios.toml is up to date\n"


def test_what_pytest_left_out_is_neither_added_nor_removed(suite):
    suite.write("test_money.py", f"import pytest\npytest.importorskip('not_there')\n{MONEY}")
    suite.write("conftest.py", FILTERING.replace("refund", "search"))
    done = suite.agent_eval("scenarios", "--write", "suite")
    assert done.returncode == 0
    assert "note: 'search' was removed by a hook: neither added nor removed" in done.stdout
    assert "note: suite/test_money.py was skipped (could not import" in done.stdout
    assert suite.listed == MANIFEST


def test_a_restricted_collection_keeps_the_other_entries(suite):
    done = suite.agent_eval("scenarios", "--write", "suite", "--", "-k", "search")
    assert "note: restricted by -k search: other entries are kept" in done.stdout
    assert suite.listed == MANIFEST
    suite.write("test_desk.py", "")
    suite.agent_eval("scenarios", "--write", "suite/test_desk.py")
    assert suite.listed == '[required]\n"refund" = "suite/test_money.py"\n'


RETURNING = """
from ci_agent_eval import llm_episode

@llm_episode()
def test_made_elsewhere():
    return {"scenario_id": "made", "assertions": [{"name": "is polite", "passed": True}]}
"""


def test_scenarios_that_are_named_while_tests_run_come_from_results(suite):
    suite.write("test_made.py", RETURNING)
    suite.agent_eval("run", "suite")
    warnings = suite.verdict["verdict"]["warnings"]
    assert ("new_scenario", "made") in {(one["kind"], one["scenario_id"]) for one in warnings}
    done = suite.agent_eval("scenarios", "--write", "--results", "agent-eval-report")
    assert done.returncode == 0, done.stderr
    assert '"made" = "suite/test_made.py"' in suite.listed
    kept = suite.agent_eval("scenarios", "suite")
    assert kept.returncode == 0
    assert "its tests return their episodes; add them with --results after a run" in kept.stdout


def test_a_suite_that_cannot_be_collected_is_an_error(suite):
    suite.write("test_money.py", "import not_there")
    done = suite.agent_eval("scenarios", "--write", "suite")
    assert done.returncode == 2
    assert "No module named 'not_there'" in done.stdout
    assert "the suite cannot be collected (pytest ended with status 2)" in done.stderr
    assert suite.listed == MANIFEST


def test_an_ini_file_does_not_restrict_on_purpose(suite):
    (suite.folder / "pytest.ini").write_text("[pytest]\naddopts = -k 'not refund'")
    assert suite.agent_eval("run", "suite").returncode == 1
    assert suite.reasons == [("missing_scenario", "refund")]


def test_results_that_are_not_whole_are_refused(suite):
    done = suite.agent_eval("scenarios", "--write", "--results", "nothing")
    assert done.returncode == 2
    assert suite.listed == MANIFEST
