"""A framework's agents beside a scripted model server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from tests.frameworks.frameworks import FRAMEWORKS, FUNCTIONS
from tests.frameworks.rows import Row
from tests.frameworks.scripts import Scripts
from tests.model_server import ModelServer

ENVIRONMENT = os.environ.get("FRAMEWORK", "")
_ON_OBJECTS = ["test_agents.py", "test_row.py", "test_suite_replay.py"]
collect_ignore = {"node": ["test_agents.py", "test_functions.py"]}.get(
    ENVIRONMENT,
    [*_ON_OBJECTS, "test_codex.py"]
    if ENVIRONMENT in FUNCTIONS
    else ["test_codex.py", "test_functions.py"],
)
"""Agents that run on Node are programs and not objects; Codex and functions have their own tests."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test for each framework of the environment."""
    if "framework" in metafunc.fixturenames:
        names = [name for name, one in FRAMEWORKS.items() if one.environment == ENVIRONMENT]
        if ENVIRONMENT == "node":
            is_codex = metafunc.module.__name__.endswith("test_codex")
            names = [name for name in names if (name == "codex") == is_codex]
        assert names, f"FRAMEWORK={ENVIRONMENT!r}: start the tests with `make frameworks`"
        metafunc.parametrize("framework", names, scope="session")


@pytest.fixture(scope="session")
def server() -> Iterator[ModelServer]:
    """The model server of all tests; the SDKs read its address when they are imported."""
    with ModelServer({}) as server:
        os.environ |= build_environ(server)
        yield server


def build_environ(server: ModelServer) -> Mapping[str, str]:
    """Return the variables by which all SDKs find a model server, without telemetry."""
    return {
        "AGNO_TELEMETRY": "false",
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": server.root_url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root_url,
        "AWS_SECRET_ACCESS_KEY": "key",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "GOOGLE_API_KEY": "key",
        "GOOGLE_GEMINI_BASE_URL": server.root_url,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENAI_API_BASE": server.base_url,
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": server.base_url,
        "OTEL_SDK_DISABLED": "true",
    }


@pytest.fixture
def agents(server: ModelServer, framework: str) -> ModuleType:
    """The module of the framework's agents, which imports nothing of ours."""
    return import_module(f"tests.frameworks.agents.{framework}")


@pytest.fixture
def scripts(server: ModelServer, framework: str) -> Scripts:
    """The scripts of the model server, in the words of the framework."""
    return Scripts(server, framework)


def get_version(package: str) -> str:
    """Return the version of a package of Python or, in the environment `node`, of npm."""
    if ENVIRONMENT != "node":
        return version(package)
    lock = json.loads((Path(__file__).parents[1] / "package-lock.json").read_text("utf-8"))
    return str(lock["packages"][f"node_modules/{package}"]["version"])


@pytest.fixture(scope="session")
def row(framework: str) -> Iterator[Row]:
    """The framework's row of the table, compared with the recorded one at the end."""
    package = FRAMEWORKS[framework].package
    row = Row(framework, f"{package} {get_version(package)}")
    yield row
    row.compare_or_write(update=os.environ.get("UPDATE_GOLDEN") == "1")
