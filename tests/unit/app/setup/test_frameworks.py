"""Agents of known frameworks in a project's requirements and code."""

from __future__ import annotations

from ci_agent_eval.app.setup.first_files import build_first_test
from ci_agent_eval.app.setup.repository import FoundAgent, find_agent, find_required_framework
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
