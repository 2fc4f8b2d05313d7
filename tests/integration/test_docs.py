"""What the documents show is true: code blocks run, files are read, outputs are real.

`PAGES` says what the Python of a page needs; a page that shows no Python needs no entry.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from click import Context

from ci_agent_eval import checks
from ci_agent_eval.app.judging.labels import parse_labels
from ci_agent_eval.app.judging.rejudge import load_plan
from ci_agent_eval.authoring.scenarios.load import parse_scenarios
from ci_agent_eval.authoring.simulation.result import SimulationStop
from ci_agent_eval.config.options import ACKNOWLEDGED_NAME, OPTIONS, Settings
from ci_agent_eval.config.settings import load_settings, load_waivers
from ci_agent_eval.contract.scenario import ScenarioChecks, ScenarioEntry
from ci_agent_eval.contract.scenario_manifest import parse_manifest
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.engine.adapters.transcript import TYPES, Transcript
from ci_agent_eval.errors import InputError
from ci_agent_eval.github.publication import CommentMode
from ci_agent_eval.model_traffic.gateway.providers import MODEL_PROVIDERS
from ci_agent_eval.opik import decorators
from ci_agent_eval.pytest_plugin.opik.experiment_options import SETTINGS
from ci_agent_eval.results.importers.registry import BUILT_IN
from ci_agent_eval.steering.hook.agents import AGENTS
from ci_agent_eval.steering.policy.command_extraction import PYTEST_TOOLS, SHELL_TOOLS
from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE
from ci_agent_eval.steering.settings_loader import KEYS, parse_steering_settings
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.processes import clean_environ, run_agent_eval, run_python
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import answer

ROOT = Path(__file__).parents[2]
TEXTS = {path.stem: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


class Block(NamedTuple):
    """A code block; its file's name stands behind the language, or in a comment on line 1."""

    language: str
    file: str
    code: str


def read_blocks(text: str, language: str = "") -> list[Block]:
    """Return the code blocks of a page, of one language if it is named."""
    blocks = []
    fence = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for kind, name, code in fence.findall(text):
        named = re.match(r"# ([\w-]+\.\w+)[,\n]", code)
        blocks.append(Block(kind, name or (named[1] if named else ""), code))
    return [block for block in blocks if language in ("", block.language)]


def blocks(language, text=README):
    return [block.code for block in read_blocks(text, language)]


class Page(NamedTuple):
    """How many episodes the Python of a page has, and whether later blocks use earlier ones."""

    episodes: int
    is_one_file: bool = False


PAGES = {
    "agents": Page(3),
    "baselines": Page(1),
    "checks": Page(6, is_one_file=True),
    "engine": Page(8, is_one_file=True),
    "episodes": Page(6),
    "faster-runs": Page(2),
    "simulation": Page(7),
}
OTHER_PYTHON = {"migration", "other-tools", "public-api"}
"""Pages with Python that is no suite of its own; the last one is in test_extensions.py."""

BANK_EXTRAS = """

@server.prompt()
def balance_summary(account: str) -> str:
    return f"Summarize {account}."


@server.resource("bank://rates")
def read_rates() -> str:
    return "2 %"
"""
DEEPEVAL_METRICS = """
import re
class PatternMatchMetric:
    def __init__(self, pattern, threshold=1.0):
        self.pattern, self.threshold = re.compile(pattern), threshold
    def measure(self, case):
        self.reason = f"fullmatch of the answer to {case.input!r}"
        return float(self.pattern.fullmatch(case.actual_output) is not None)
"""
BANK = (ROOT / "examples/banking/bank_server.py").read_text()
MY_AGENT = """
import sys
from openai import OpenAI
answer = "It is $1,500.00."
if sys.argv[1:]:  # else it is asked on standard input, and may reach no server of this machine
    answer = OpenAI().responses.create(model="gpt-5-mini", input=sys.argv[1]).output_text
print(answer)
"""
SUPPORT = {
    "bank_server.py": BANK.replace("\n\nif __name__", f"{BANK_EXTRAS}\n\nif __name__"),
    "my_agent.py": MY_AGENT,
    # The part of DeepEval that a page uses; the real one fits into no common environment.
    "deepeval/__init__.py": "",
    "deepeval/metrics.py": DEEPEVAL_METRICS,
    "deepeval/test_case.py": "from typing import NamedTuple\n"
    "class LLMTestCase(NamedTuple):\n    input: str\n    actual_output: str\n",
}
"""Modules that the code of the pages takes for granted."""

VERDICT = Step(tool_calls=[call("final_result", reason="it does", **{"pass": True, "score": 1.0})])
GRADES = [
    {"name": "clarity", "reason": "short", "score": 4},
    {"name": "tone", "reason": "dry", "score": 6},
]
CHECKING, SAVINGS = (
    Step(tool_calls=[call("get_balance", account=name)]) for name in ("checking", "savings")
)
BALANCE = Step(text="It is {tool}.")
SCRIPT = {
    "Say hello": [Step(text="Hello!")],
    "What's my balance": [Step(text="It is $1,500.00.")],
    "names the sum": [VERDICT],
    "tells the sum": [VERDICT],
    "asks first": [VERDICT, VERDICT],
    "first reading": [Step(tool_calls=[call("final_result", reason="fine", grades=GRADES)])],
    "checking balance": [CHECKING, BALANCE, SAVINGS, BALANCE],
    "Check every account": [CHECKING, BALANCE],
    "Summarize checking": [CHECKING, BALANCE],
    "rob your bank": [Step(refusal="No.")],
}
"""What the model answers, by words of the prompt."""


def write_suite(folder, name, page):
    """Write the tests of a page: one file, or a folder for each block with the page's files."""
    shown = read_blocks(TEXTS[name])
    suites = [b.code for b in shown if b.language == "python" and not b.file]
    suites = [code for code in suites if not code.startswith("# needs:")]
    for number, code in enumerate(["\n\n".join(suites)] if page.is_one_file else suites):
        # Blocks may show the same scenario; it must not count as one of both.
        own_code = code.replace('scenario_id="', f'scenario_id="{name}{number}_')
        own = folder / f"{name}{number}"
        own.mkdir()
        (own / "test_page.py").write_text(own_code.replace('"openai:', '"openai-chat:'))
        for block in shown:
            if block.file and "/" not in block.file and block.language in ("yaml", "csv"):
                (own / block.file).write_text(block.code)


def test_the_python_of_the_pages_passes(tmp_path):
    assert {name for name in TEXTS if blocks("python", TEXTS[name])} == {*PAGES, *OTHER_PYTHON}
    for name, code in SUPPORT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    for name, page in PAGES.items():
        write_suite(tmp_path, name, page)
    with ModelServer(SCRIPT) as server:
        done = run_agent_eval(
            *("run", "--", "-W", "error", "--import-mode=importlib"),
            cwd=tmp_path,
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="sk-test-of-nobody-0123456789",
        )
    assert done.returncode == 0, done.stdout
    report = json.loads((tmp_path / "agent-eval-report/results.json").read_text())
    ran = {one["nodeid"] for one in report["episodes"]}
    counted = Counter(nodeid.partition("/")[0].rstrip("0123456789") for nodeid in ran)
    assert counted == {name: page.episodes for name, page in PAGES.items()}


def run_commands(folder, text):
    """Run the commands of a block; each line below a command is in what it prints."""
    environ = clean_environ(PYTHONPATH=str(folder), OPIK_CONFIG_PATH=str(folder / "none"))
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command, *shown in (part.splitlines() for part in text.split("$ ")[1:]):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        is_held = shown[:1] == ["full suite: it would be held back once in each session"]
        assert done.returncode == int(is_held), done.stdout + done.stderr
        for line in shown:
            pattern = re.escape(line).replace(r"\*", ".*")
            assert re.search(rf"^{pattern}$", done.stdout, re.MULTILINE), (line, done.stdout)


def test_the_page_on_migration_does_what_it_says(tmp_path):
    for block in read_blocks(TEXTS["migration"]):
        if block.language == "console":
            run_commands(tmp_path, block.code)
        else:
            (tmp_path / block.file).write_text(block.code)


@each_row("code", [code for code in blocks("console", TEXTS["steering"]) if "steer check" in code])
def test_commands_of_steering_answer_what_is_shown(code, tmp_path):
    run_commands(tmp_path, code)


def test_files_of_settings_are_read(tmp_path):
    for page, text in {**TEXTS, "README": README}.items():
        for block in read_blocks(text, "toml"):
            content = tomllib.loads(block.code)
            if block.file == "agent-eval-scenarios.toml":
                assert parse_manifest(block.code, page).entries
            elif block.file == ACKNOWLEDGED_NAME:
                (tmp_path / ACKNOWLEDGED_NAME).write_text(block.code)
                settings = load_settings(root=tmp_path, environ={}, flags={})
                assert load_waivers(tmp_path, settings, dt.date(2026, 1, 1)).acknowledged
            elif not {"project", "tool", "mapping"} & set(content):  # see test_mapping.py
                (tmp_path / "agent-eval.toml").write_text(block.code)
                assert load_settings(root=tmp_path, environ={}, flags={}), page
                (tmp_path / "agent-eval.toml").unlink()


NAMED = {
    "agents": [name for provider in MODEL_PROVIDERS for name in provider.url_variables],
    "comment": get_args(CommentMode),
    "engine": get_args(StopReason),
    "simulation": [
        *ScenarioEntry.model_fields,
        *ScenarioChecks.model_fields,
        *get_args(SimulationStop),
    ],
    "steering": [*AGENTS, *SHELL_TOOLS, *PYTEST_TOOLS],
}
"""What a page has to name, as a reader finds it nowhere else."""


def test_pages_name_all_there_is():
    missing = {
        page: {name for name in names if f"`{name}`" not in TEXTS[page]}
        for page, names in NAMED.items()
    }
    assert not any(missing.values()), missing
    others = {"Check", "ScoringDimension", "as_check", "from_evaluator"}
    assert [n for n in set(checks.__all__) - others if f"check({n}(" not in TEXTS["checks"]] == []
    assert [name for name in decorators.__all__ if name not in TEXTS["migration"]] == []
    tools = {importer.tool.partition(" (")[0] for importer in BUILT_IN.values()}
    assert {tool for tool in tools if f"\n### {tool}\n" not in TEXTS["other-tools"]} == set()
    (option,) = [option for option in OPTIONS if option.name == "comment"]
    assert option.choices == get_args(CommentMode)


def test_the_readme_is_a_front_page_and_every_page_is_linked():
    assert len(README.splitlines()) <= 100
    assert len(re.findall(r"(?<!!)\[[^]]*\]\([\w.]", README)) <= 10
    missing = [name for name in {*TEXTS} - {"start"} if f"]({name}.md)" not in TEXTS["start"]]
    assert missing == []


def test_no_link_between_pages_is_dead():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", without_code(page.read_text()))
        if not is_reached(page, target)
    ]
    assert dead == []


def without_code(text):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def is_reached(page, target):
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    if not file.exists():
        return False
    return not anchor or anchor in {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    }


def test_each_file_and_folder_that_contributing_names_exists():
    place = re.compile(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)*[\w-]+\.(?:py|md|toml))`")
    named = set(place.findall(CONTRIBUTING))
    assert "render/report_view.py" in named
    package = ROOT / "ci_agent_eval"
    missing = [
        name
        for name in sorted(named)
        if not any((root / name).exists() for root in (ROOT, package))
        and not any(package.rglob(name))
    ]
    assert missing == []


def test_the_readme_s_test_passes_and_its_comment_is_written(tmp_path):
    (code,) = blocks("python")
    (tmp_path / "test_desk.py").write_text(code)
    (tmp_path / ".git").mkdir()
    assert run_agent_eval("run", "--report-dir=base", cwd=tmp_path).returncode == 0
    (tmp_path / "test_desk.py").write_text(
        code.replace("Your 39 dollars are on their way.", "Please ask our bank.")
    )
    assert run_agent_eval("run", "--baseline=base", cwd=tmp_path).returncode == 1
    comment = (tmp_path / "agent-eval-report/comment.md").read_text()
    start = README.index("> ### ❌")
    quoted = re.sub(r"^> ?", "", README[start : README.index("\n\n", start)], flags=re.MULTILINE)
    assert quoted in comment


def test_the_configuration_of_the_reference_names_every_key(tmp_path):
    (text,) = blocks("toml", TEXTS["reference"])
    shown = tomllib.loads(
        re.sub(r"^# (comment_author|report_url) ", r"\1 ", text, flags=re.MULTILINE)
    )
    assert set(shown) == set(Settings.model_fields)
    (tmp_path / "agent-eval.toml").write_text(text)
    settings = load_settings(root=tmp_path, environ={}, flags={})
    for table in ("gate", "budgets", "publish"):
        assert set(shown[table]) == set(type(getattr(settings, table)).model_fields), table


def test_every_command_has_an_example():
    from ci_agent_eval.app.cli import cli

    for command in set(cli.list_commands(Context(cli))) - {"action"}:
        assert f"$ agent-eval {command}" in TEXTS["reference"]


def test_the_lines_of_an_agent_s_program_are_read():
    (lines,) = blocks("json", TEXTS["agents"])
    heard = Transcript()
    for number, line in enumerate(lines.splitlines()):
        heard.add_line(line, number)
    assert [turn.content for turn in heard.turns] == [
        "Let me look.",
        "Your checking balance is $1,500.00",
    ]
    assert {json.loads(line)["type"] for line in lines.splitlines()} == set(TYPES)


def test_the_difference_of_a_state_is_in_the_report(tmp_path):
    (code,) = (block for block in blocks("python", TEXTS["checks"]) if "def test_state" in block)
    greedy = code.replace(" where id = 1001", "")
    assert greedy != code
    (tmp_path / "test_page.py").write_text(f"from ci_agent_eval import check\n{greedy}")
    assert run_agent_eval("run", "test_page.py", cwd=tmp_path).returncode == 1
    (diff,) = blocks("diff", TEXTS["checks"])
    assert f"```diff\n{diff}```" in (tmp_path / "agent-eval-report/comment.md").read_text()


def test_the_file_of_judges_loads_and_the_labels_parse(tmp_path):
    (code,) = (b.code for b in read_blocks(TEXTS["checks"]) if b.file == "judges.py")
    (tmp_path / "judges.py").write_text(code)
    plan = load_plan(tmp_path / "judges.py")
    assert (len(plan.find_checks("refund_late")), len(plan.find_checks("greeting"))) == (3, 2)
    assert plan.find_budgets("greeting")[0].max_turns.limit == 4
    labels = parse_labels(*blocks("csv", TEXTS["checks"]))
    assert [(label.iteration, label.passed) for label in labels] == [(1, True), (2, False)]


@each_row("arguments", [["--eval"], ["shop_eval.py"]], ids=["option", "name"])
def test_the_table_of_the_evaluation_is_printed(tmp_path, arguments):
    (code,) = (b.code for b in read_blocks(TEXTS["checks"]) if b.file == "shop_eval.py")
    (tmp_path / "shop_eval.py").write_text(code)
    done = run_python("-m", "pytest", "-q", "-W", "error", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    shown, printed = (
        [re.sub(r" +[\d.]+ m?s$", "", line) for line in text.splitlines()]
        for text in (*blocks("text", TEXTS["checks"]), done.stdout)
    )
    assert set(shown) < set(printed)


@each_row(
    ("name", "right", "wrong"),
    [("desk.yaml", "persona:", "persna:"), ("more.csv", ",0\n", ",few\n")],
)
def test_the_errors_of_scenario_files_are_shown_as_they_are(name, right, wrong):
    (text,) = (b.code for b in read_blocks(TEXTS["simulation"]) if b.file == name)
    assert right in text
    with pytest.raises(InputError) as refused:
        parse_scenarios(text.replace(right, wrong).encode(), name)
    assert str(refused.value) in TEXTS["simulation"]


FILES_OF_TOOLS = {
    "promptfoo.json": "promptfoo/once.json",
    "log.eval": "inspect_ai/repeated.eval",
    ".latest_run_full.json": "deepeval/single.json",
    "pydantic-evals.json": "pydantic_evals/once.json",
    "ctrf-report.json": "ctrf/jest.json",
}


@each_row("name", FILES_OF_TOOLS)
def test_a_command_reads_what_its_tool_writes(name, tmp_path):
    page = TEXTS["other-tools"]
    (command,) = re.findall(rf"^\$ agent-eval (.* {re.escape(name)})$", page, re.MULTILINE)
    written = ROOT / "tests/fixtures/interchange" / FILES_OF_TOOLS[name]
    shutil.copy(written, tmp_path / name)
    done = run_agent_eval(*shlex.split(command), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    assert verdict["counts"]["findings"] == 0
    kind = "tests" if name == "ctrf-report.json" else "episodes"
    assert verdict["counts"][kind]["passed"] > 0


def test_the_versions_of_the_tools_are_those_of_the_files():
    notes = (ROOT / "tests/fixtures/interchange/README.md").read_text()
    versions = re.findall(r"\| ([\d.]+) \|$", TEXTS["other-tools"], re.MULTILINE)
    assert versions
    assert [version for version in versions if f" {version} " not in notes] == []


def test_the_python_for_pydantic_evals_writes_a_file_that_passes(tmp_path):
    (tmp_path / "evaluate.py").write_text(*blocks("python", TEXTS["other-tools"]))
    assert run_python("evaluate.py", cwd=tmp_path).returncode == 0
    done = run_agent_eval("report", "--results", "pydantic-evals.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@each_row("setting", SETTINGS, ids=lambda setting: setting.ini)
def test_every_setting_of_experiments_is_in_the_table(setting):
    variable = f"`{setting.variable}`" if setting.variable else ""
    rows = TEXTS["migration"].splitlines()
    (row,) = [line for line in rows if f"| `{setting.option}` |" in line]
    _, _, option, environment, ini, default, _ = (cell.strip() for cell in row.split("|"))
    assert (option, environment) == (f"`{setting.option}`", variable)
    assert ini == f"`{setting.ini}`"
    assert default == (f"`{setting.default}`" if setting.default else default)


def test_the_settings_of_steering_are_read_and_name_every_key():
    (text,) = blocks("yaml", TEXTS["steering"])
    assert all(f"\n  {key}: " in text.replace(":\n", ": \n") for key in KEYS)
    assert parse_steering_settings(text, "page").rules.bare_directory == "covers_testpaths"
    assert DEFAULT_MESSAGE in " ".join(TEXTS["steering"].replace("\n> ", " ").split())


def test_the_files_of_every_steered_agent_are_in_the_table():
    row = r"^\| `([a-z-]+)` \| (`\S+` \| `\S+`) \|"
    assert dict(re.findall(row, TEXTS["steering"], re.MULTILINE)) == {
        name: f"`{agent.get_path(Path(), {}, Path())}` | `{agent.get_path(None, {}, Path('~'))}`"
        for name, agent in AGENTS.items()
    }


def test_commands_get_the_answer_that_the_page_gives_them():
    row = r"^\| (full|targeted|nothing|no) \| (`.+`) \|$"
    examples = [
        (expected, command)
        for expected, cell in re.findall(row, TEXTS["steering"], re.MULTILINE)
        for command in re.findall(r"`([^`]+)`", cell)
    ]
    assert {expected for expected, _ in examples} == {"full", "targeted", "nothing", "no"}
    assert [one for one in examples if answer(detect_in_text(one[1])) != one[0]] == []
