from __future__ import annotations

import subprocess
import sys

import pytest

from ci_agent_eval import engine
from ci_agent_eval.errors import InputError

HEAVY = ("pydantic_ai", "mcp", "fastmcp", "openai", "genai_prices", "opentelemetry")


RARE = ("yaml", "ci_agent_eval.steering.policy.reactor", "pydantic_ai.models.function")
"""What only cassettes, steering and scripted agents need."""


def loaded_after(*codes: str, of: tuple[str, ...] = HEAVY) -> list[list[str]]:
    """Return what is loaded after each code, run in turn in one process."""
    show = f"print(*[m for m in {of!r} if m in sys.modules])"
    script = "\n".join(["import sys", *(f"{code}\n{show}" for code in codes)])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_nothing_heavy_comes_before_the_first_run():
    codes = [
        "import ci_agent_eval",
        "import ci_agent_eval.pytest_plugin",
        "import ci_agent_eval.engine",
        "from ci_agent_eval.engine import Agent, Provider, MCPServer, CLIServer, Skill, AgentResult",
        "from ci_agent_eval.engine import CassetteStore",
    ]
    assert loaded_after(*codes) == [[]] * 5


def test_a_plain_run_loads_nothing_that_few_need():
    code = "from ci_agent_eval.engine import aitest_run, EngineSession, RunLimits"
    assert loaded_after(code, of=("fastmcp", *RARE)) == [[]]


def test_every_public_name_is_there():
    for name in engine.__all__:
        assert getattr(engine, name).__name__ == name
    assert set(engine.__all__) == set(engine._HOMES)
    with pytest.raises(AttributeError):
        engine.nothing  # noqa: B018 - it is the asking that is tested


def test_a_missing_library_is_said_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "ci_agent_eval.engine.adapters.http", raising=False)
    with pytest.raises(InputError, match=r"pip install 'ci-agent-eval\[traffic\]"):
        engine.HTTPAgent  # noqa: B018 - it is the asking that is tested
