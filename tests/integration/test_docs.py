"""What the documents show is true: code blocks run, configuration is read, outputs are real."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

from click import Context
from ruamel.yaml import YAML

from ci_agent_eval.app.setup.first_files import build_workflow
from ci_agent_eval.config.settings import Settings, load_settings
from ci_agent_eval.contract.stops import StopReason
from tests.model_server import ModelServer, Step
from tests.model_server.script import call
from tests.processes import run_agent_eval, run_python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


ENGINE = (ROOT / "docs/engine.md").read_text()
BANK_EXTRAS = """

@server.prompt()
def balance_summary(account: str) -> str:
    return f"Summarize {account}."


@server.resource("bank://rates")
def read_rates() -> str:
    return "2 %"
"""
SCENARIOS = {
    "episodes": 2,
    "simulation": 7,
    "baselines": 1,
    "faster-runs": 2,
}
"""How many scenarios the Python of a page has, each block as a file of tests of its own."""


def test_the_python_of_the_pages_passes(tmp_path):
    for page in SCENARIOS:
        text = (ROOT / f"docs/{page}.md").read_text()
        files = dict(re.findall(r"^```\w+ ([^\s/]+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        for number, block in enumerate(blocks("python", text)):
            # Blocks may show the same scenario; it must not count as one of both.
            code = block.replace('scenario_id="', f'scenario_id="{page}{number}_')
            folder = tmp_path / f"{page}{number}"
            folder.mkdir()
            for name, content in {**files, "test_page.py": code}.items():
                (folder / name).write_text(content)
    done = run_agent_eval("run", "--", "-W", "error", "--import-mode=importlib", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    report = json.loads((tmp_path / "agent-eval-report/results.json").read_text())
    found = Counter(
        (one["nodeid"].partition("/")[0].rstrip("0123456789"), one["scenario_id"])
        for one in report["episodes"]
    )
    assert Counter(page for page, _ in found) == SCENARIOS


def test_the_readme_is_a_front_page_and_every_page_is_linked():
    assert len(README.splitlines()) <= 100
    assert len(re.findall(r"(?<!!)\[[^]]*\]\([\w.]", README)) <= 10
    start = (ROOT / "docs/start.md").read_text()
    missing = [
        page.name
        for page in (ROOT / "docs").glob("*.md")
        if page.name != "start.md" and f"]({page.name})" not in start
    ]
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


def test_the_readme_s_workflow_is_a_part_of_the_one_that_init_writes():
    shown, written = (YAML(typ="safe").load(text) for text in (*blocks("yaml"), build_workflow()))
    assert set(shown["on"]) < set(written["on"])
    job, full = shown["jobs"]["episodes"], written["jobs"]["episodes"]
    assert shown["permissions"].items() < full["permissions"].items()
    checkout, run = job["steps"]
    assert checkout == full["steps"][0]
    assert run["uses"] == full["steps"][1]["uses"]
    assert set(run["with"]) < set(full["steps"][1]["with"])


def test_the_engine_s_page_runs(tmp_path):
    """The model is scripted; the tool server is the bank of examples/banking with a prompt."""
    bank = (ROOT / "examples/banking/bank_server.py").read_text()
    (tmp_path / "bank_server.py").write_text(
        bank.replace("\n\nif __name__", f"{BANK_EXTRAS}\n\nif __name__")
    )
    code = "\n".join(blocks("python", ENGINE)).replace("openai:", "openai-chat:")
    (tmp_path / "test_page.py").write_text(code)
    checking, savings = (
        Step(tool_calls=[call("get_balance", account=name)]) for name in ("checking", "savings")
    )
    answer = Step(text="It is {tool}.")
    script = {
        "checking balance": [checking, answer, savings, answer],
        "Check every account": [checking, answer],
        "Summarize checking": [checking, answer],
        "rob your bank": [Step(refusal="No.")],
    }
    with ModelServer(script) as server:
        done = run_python(
            *("-m", "pytest", "-q", "-W", "error", "test_page.py"),
            cwd=tmp_path,
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="sk-test-of-nobody-0123456789",
        )
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


def test_every_way_to_end_is_on_the_engine_s_page():
    assert all(f"`{reason}`" in ENGINE for reason in get_args(StopReason))


def test_the_configuration_of_the_reference_is_read_and_names_every_key(tmp_path):
    (text,) = blocks("toml", (ROOT / "docs/reference.md").read_text())
    (tmp_path / "agent-eval.toml").write_text(text)
    settings = load_settings(root=tmp_path, environ={}, flags={})
    assert settings.budgets.total_wall_time_s.hard is False
    shown = tomllib.loads(
        re.sub(r"^# (comment_author|report_url) ", r"\1 ", text, flags=re.MULTILINE)
    )
    assert set(shown) == set(Settings.model_fields)
    for table in ("gate", "budgets", "publish"):
        assert set(shown[table]) == set(type(getattr(settings, table)).model_fields), table


def test_every_command_has_an_example():
    from ci_agent_eval.app.cli import cli

    page = (ROOT / "docs/reference.md").read_text()
    for command in set(cli.list_commands(Context(cli))) - {"action"}:
        assert f"$ agent-eval {command}" in page
