"""What `agent-eval init` finds in a repository and writes, and the workflows that the pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from ruamel.yaml import YAML

from ci_agent_eval.app.setup.first_files import build_first_test, build_workflow
from ci_agent_eval.app.setup.repository import (
    FoundAgent,
    ProjectRepository,
    find_agent,
    find_required_framework,
)
from tests.tables import each_row


@each_row(
    ("requirement", "name"),
    [
        ("openai-agents>=0.2", "OpenAI Agents SDK"),
        ("pydantic_ai[logfire]==2.62.0", "PydanticAI"),
        ("LangGraph", "LangGraph"),
        ("google-adk ~= 2.0 ; python_version > '3.10'", "Google ADK"),
        ("strands-agents", "Strands Agents"),
        ("llama-index-core", "LlamaIndex"),
    ],
)
def test_framework_is_known_by_its_distribution(requirement: str, name: str) -> None:
    found = find_required_framework(iter(["# agents", "requests", requirement]))

    assert found is not None
    assert found.name == name


def test_requirements_without_an_agent_framework_give_none() -> None:
    assert find_required_framework(iter(["requests", "-e .", "openai", ""])) is None


AGENTS = {
    "openai": ("from agents import Agent\ntriage = Agent[Context](name='x')", "triage"),
    "alias": ("import agents\ndesk: agents.Agent = agents.Agent(name='x')", "desk"),
    "langgraph": (
        (
            "import re\nfrom langgraph.graph import StateGraph\n"
            "graph = StateGraph(dict).compile()\nWORD = re.compile('x')"
        ),
        "graph",
    ),
    "langchain": ("from langchain.agents import create_agent\nagent = create_agent('m')", "agent"),
    "adk": (
        "from google.adk.agents import LlmAgent\nroot_agent = LlmAgent(name='x')",
        "root_agent",
    ),
    "entry point": (
        "from agents import Agent\nfaq = Agent(name='f')\ntriage = Agent(handoffs=[faq])",
        "triage",
    ),
}


@each_row("case", AGENTS)
def test_agent_is_the_last_global_one(case: str) -> None:
    source, name = AGENTS[case]

    found = find_agent(source)

    assert found is not None
    assert found.name == name


@each_row(
    "source",
    [
        "",
        "def broken(",
        "from other import Agent\nagent = Agent()",
        "from agents import Agent\ndef make():\n    agent = Agent()",
        "from agents import Agent\nname = str(Agent)",
        "import re\nfrom langgraph.graph import StateGraph\nWORD = re.compile('x')",
    ],
)
def test_other_code_defines_no_agent(source: str) -> None:
    assert find_agent(source) is None


def test_first_test_of_an_agent_with_dependencies_says_where_they_belong() -> None:
    found = find_agent(
        "from pydantic_ai import Agent\nbank = Agent('openai:gpt-5.2', deps_type=Bank)"
    )
    assert found is not None

    lines = build_first_test(FoundAgent("desk/bank.py", "desk.bank", found)).splitlines()

    assert "from ci_agent_eval.engine import LoopAgent" in lines
    place = lines.index("    # bank has a `deps_type`: replace None by its dependencies.")
    assert lines[place + 1].startswith("    result = await aitest_run(LoopAgent(bank, deps=None), ")
    compile("\n".join(lines), "test_first_episode.py", "exec")


AGENT = "from agents import Agent\n\nagent = Agent(name='desk')\n"


def test_an_agent_of_a_test_is_not_the_projects(tmp_path):
    for name in ("tests/main.py", "app/test_main.py", "app/conftest.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent is None
    (tmp_path / "app/desk.py").write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent.file == "app/desk.py"


@each_row(
    ("address", "name"),
    [
        ("https://github.com/octo/shop.git", "octo/shop"),
        ("https://github.com/octo/shop", "octo/shop"),
        ("git@github.com:octo/shop.git", "octo/shop"),
        ("ssh://git@github.com/octo/my.shop/", "octo/my.shop"),
        ("https://gitlab.com/octo/shop.git", None),
        ("https://github.com.example.org/octo/shop.git", None),
        ("../shop.git", None),
    ],
)
def test_the_name_on_github_is_that_of_origin(tmp_path, address, name):
    (tmp_path / ".git").mkdir()
    other = '[remote "fork"]\n\turl = https://github.com/someone/shop.git\n'
    origin = f'[remote "origin"]\n\tfetch = +refs/heads/*\n\turl = {address}\n'
    (tmp_path / ".git/config").write_text(f"[core]\n\tbare = false\n{other}{origin}")
    assert ProjectRepository.find(tmp_path).find_github_name("github.com") == name


ROOT = Path(__file__).parents[3]
WORKFLOWS = {
    path.stem: path.read_text() for path in sorted((ROOT / "docs/workflows").glob("*.yml"))
}
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
BLOCKS = [
    (name, block)
    for text in PAGES.values()
    for name, block in re.findall(r"^```yaml *(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
]
"""The name after `yaml`, if it has one, and the text of each block of a page."""


def parsed(text):
    return YAML(typ="safe").load(text)


def steps(name):
    return [step for job in parsed(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]


def uses(name, action):
    return next(step for step in steps(name) if step.get("uses", "").startswith(action))


def test_the_first_one_is_written_by_init():
    assert WORKFLOWS["baseline"] == build_workflow()


@each_row("name", WORKFLOWS)
def test_a_page_shows_or_links_it_and_quotes_it_word_for_word(name):
    quoted = [block for title, block in BLOCKS if title == f"workflows/{name}.yml"]
    assert quoted
    depths = [" " * depth for depth in range(0, 12, 2)]
    assert all(any(indent(block, depth) in WORKFLOWS[name] for depth in depths) for block in quoted)
    linked = any(f"](workflows/{name}.yml)" in text for text in PAGES.values())
    assert linked or WORKFLOWS[name] in quoted


def test_the_action_has_the_inputs_that_workflows_and_pages_give_it():
    known = set(parsed((ROOT / "action.yml").read_text())["inputs"])
    texts = [*WORKFLOWS.values(), *(block for _, block in BLOCKS if "agent-eval-action" in block)]
    given = [set(step["with"]) for text in texts for step in list_action_steps(parsed(text))]
    assert len(given) > len(WORKFLOWS)
    assert [inputs - known for inputs in given if inputs - known] == []


def list_action_steps(node) -> Iterator[dict]:
    if isinstance(node, list):
        for entry in node:
            yield from list_action_steps(entry)
    elif isinstance(node, dict):
        if "org/agent-eval-action" in str(node.get("uses", "")):
            yield node
        yield from list_action_steps(list(node.values()))


def test_the_run_of_a_fork_can_write_nothing():
    workflow = parsed(WORKFLOWS["fork-run"])
    (job,) = workflow["jobs"].values()
    assert (workflow["permissions"], job["permissions"]) == ({}, {"contents": "read"})
    assert "secrets" not in WORKFLOWS["fork-run"]
    inputs = uses("fork-run", "org/agent-eval-action")["with"]
    assert (inputs["comment"], inputs["check-run"]) == ("off", "false")


def test_what_publishes_runs_nothing_of_theirs():
    workflow = parsed(WORKFLOWS["fork-publish"])
    (job,) = workflow["jobs"].values()
    assert list(workflow["on"]) == ["workflow_run"]
    assert workflow["on"]["workflow_run"]["workflows"] == [parsed(WORKFLOWS["fork-run"])["name"]]
    assert workflow["permissions"] == {}
    assert job["permissions"] == {
        "contents": "read",
        "actions": "read",
        "pull-requests": "write",
        "checks": "write",
    }
    assert all("run" not in step for step in job["steps"])
    assert uses("fork-publish", "actions/checkout")["with"] == {"persist-credentials": False}
    assert uses("fork-publish", "org/agent-eval-action")["with"]["mode"] == "publish"
    assert "download-artifact" not in WORKFLOWS["fork-publish"]
    assert "github.event.workflow_run.head_branch" not in WORKFLOWS["fork-publish"]


def test_shards_are_reported_by_one_job_whatever_became_of_them():
    jobs = parsed(WORKFLOWS["shards"])["jobs"]
    shard, report = jobs["shard"], jobs["report"]
    (given,) = (s["with"] for s in shard["steps"] if "agent-eval" in s["uses"])
    count = len(shard["strategy"]["matrix"]["shard"])
    assert given["shard"] == f"${{{{ matrix.shard }}}}/{count}"
    assert shard["strategy"]["matrix"]["shard"] == list(range(1, count + 1))
    assert shard["strategy"]["fail-fast"] is False
    assert shard["permissions"] == {"contents": "read"}
    assert (report["needs"], report["if"]) == ("shard", "always()")
    uploaded = next(s for s in shard["steps"] if "upload-artifact" in s.get("uses", ""))
    fetched = uses("shards", "actions/download-artifact")["with"]
    assert (uploaded["if"], uploaded["with"]["overwrite"]) == ("always()", True)
    name = uploaded["with"]["name"]
    assert fetched["pattern"] == name.replace("${{ matrix.shard }}", "*")
    reporting = next(s["with"] for s in report["steps"] if "agent-eval-action" in s["uses"])
    assert reporting == {
        "mode": "report",
        "results": f"{fetched['path']}/*",
        "jobs-result": "${{ needs.shard.result }}",
        "publish": "false",
    }


def test_the_readme_s_workflow_is_a_part_of_the_one_that_init_writes():
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    shown, written = parsed(block), parsed(build_workflow())
    assert set(shown["on"]) < set(written["on"])
    job, full = shown["jobs"]["episodes"], written["jobs"]["episodes"]
    assert shown["permissions"].items() < full["permissions"].items()
    checkout, run = job["steps"]
    assert checkout == full["steps"][0]
    assert run["uses"] == full["steps"][1]["uses"]
    assert set(run["with"]) < set(full["steps"][1]["with"])
