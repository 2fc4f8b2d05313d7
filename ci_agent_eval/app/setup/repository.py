"""The facts of a repository that its first files depend on, such as framework and agent."""

from __future__ import annotations

import ast
import itertools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True)
class KnownFramework:
    """An agent framework."""

    name: str
    packages: tuple[str, ...]
    """Names of its distributions, normalized."""
    modules: tuple[str, ...]
    """Its top-level modules."""
    factories: tuple[str, ...]
    """Classes and functions that create an agent, and methods such as `compile`."""
    extra: str = "traffic"
    """The extra of our package that runs its agents."""


FRAMEWORKS: tuple[KnownFramework, ...] = (
    KnownFramework("OpenAI Agents SDK", ("openai-agents",), ("agents",), ("Agent",)),
    KnownFramework(
        "PydanticAI", ("pydantic-ai", "pydantic-ai-slim"), ("pydantic_ai",), ("Agent",), "engine"
    ),
    KnownFramework(
        "LangGraph",
        ("langgraph", "langchain"),
        ("langgraph", "langchain"),
        ("create_agent", "create_react_agent", "compile"),
    ),
    KnownFramework("Google ADK", ("google-adk",), ("google.adk",), ("Agent", "LlmAgent")),
    KnownFramework(
        "smolagents", ("smolagents",), ("smolagents",), ("ToolCallingAgent", "CodeAgent")
    ),
    KnownFramework("Strands Agents", ("strands-agents",), ("strands",), ("Agent",)),
    KnownFramework("CrewAI", ("crewai",), ("crewai",), ("Crew", "Agent")),
    KnownFramework("AutoGen", ("autogen-agentchat",), ("autogen_agentchat",), ("AssistantAgent",)),
    KnownFramework(
        "LlamaIndex",
        ("llama-index", "llama-index-core"),
        ("llama_index",),
        ("FunctionAgent", "ReActAgent", "AgentWorkflow"),
    ),
    KnownFramework("Agno", ("agno",), ("agno",), ("Agent", "Team")),
)

_REQUIREMENT = re.compile(r"^\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class DefinedAgent:
    """An agent that a module assigns to a global name."""

    framework: KnownFramework
    name: str
    has_deps: bool = False
    """Whether a PydanticAI agent needs dependencies to run (`deps_type`)."""


def find_required_framework(requirements: Iterator[str]) -> KnownFramework | None:
    """Return the first known framework that the requirements name."""
    names = {
        re.sub(r"[-_.]+", "-", match[1]).lower()
        for line in requirements
        if (match := _REQUIREMENT.match(line))
    }
    return next((one for one in FRAMEWORKS if not names.isdisjoint(one.packages)), None)


def find_agent(source: str) -> DefinedAgent | None:
    """Return the last agent that a module assigns to a global name; None if there is none.

    The last one is usually the entry point: the agents it hands over to are defined before it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    imported = {module for node in ast.walk(tree) for module in _list_modules(node)}
    known = [one for one in FRAMEWORKS if any(_is_from(m, one) for m in imported)]
    found = [agent for node in tree.body for agent in _iterate_agents(node, known)]
    return found[-1] if found else None


def _list_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def _is_from(module: str, framework: KnownFramework) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in framework.modules)


def _iterate_agents(node: ast.stmt, known: list[KnownFramework]) -> Iterator[DefinedAgent]:
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    if not isinstance(value, ast.Call):
        return
    called = _get_called_name(value.func)
    if isinstance(value.func, ast.Attribute) and _get_called_name(value.func.value) == "re":
        return  # re.compile
    has_deps = any(keyword.arg == "deps_type" for keyword in value.keywords)
    for framework in known:
        if called in framework.factories:
            names = (target.id for target in targets if isinstance(target, ast.Name))
            yield from (DefinedAgent(framework, name, has_deps) for name in names)
            return


def _get_called_name(function: ast.expr) -> str | None:
    """Return the last name of a called expression: `Agent` of `agents.Agent[Context](...)`."""
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


MAX_SOURCES = 2_000
"""Python files that are searched for an agent."""
MAX_SOURCE_BYTES = 1_000_000

_SKIPPED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
_TEST_GROUPS = ("test", "tests", "testing", "dev")
_PYTEST_FILES = {
    "pytest.ini": "[pytest]",
    ".pytest.ini": "[pytest]",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""Files with pytest's configuration, in pytest's order, and the beginning of their section."""
_KEYS: Mapping[str, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google-adk": "GOOGLE_API_KEY",
    "google-genai": "GOOGLE_API_KEY",
}
_USES_US = re.compile(r"uses:\s*\S*/agent-eval-action\b|\bagent-eval run\b")


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent in the project's code."""

    file: str
    module: str
    agent: DefinedAgent


@dataclass(frozen=True)
class ProjectRepository:
    """A git repository, and the folder in it whose agent is tested."""

    root: Path
    folder: Path

    @classmethod
    def find(cls, start: Path) -> ProjectRepository:
        """Return the repository that contains a folder. Raises InputError outside of one."""
        for root in (start, *start.parents):
            if (root / ".git").exists():
                return cls(root, start)
        raise InputError(f"{start}: is in no git repository; go to one, or run `git init` first")

    @property
    def prefix(self) -> str:
        """The folder's path in the repository with a final slash; empty for the root."""
        relative = self.folder.relative_to(self.root).as_posix()
        return "" if relative == "." else f"{relative}/"

    @cached_property
    def default_branch(self) -> str:
        """The branch of `origin/HEAD`, else the current one, else `main`."""
        for name in ("refs/remotes/origin/HEAD", "HEAD"):
            text = _read_text(self.root / ".git" / name)
            found = re.fullmatch(r"ref: refs/(?:remotes/origin|heads)/([\w./-]+)\s*", text)
            if found:
                return found[1]
        return "main"

    def find_github_name(self, host: str) -> str | None:
        """Return `owner/name` of the remote `origin`; None if it is on another host."""
        config = _read_text(self.root / ".git/config")
        remote = re.search(r'\[remote "origin"\](?:\s*(?!\[).*\n)*?\s*url\s*=\s*(\S+)', config)
        address = (
            rf"(?:https://|ssh://git@|git@){re.escape(host)}[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
        )
        found = remote and re.fullmatch(address, remote[1])
        return found[1] if found else None

    @cached_property
    def _pyproject(self) -> Mapping[str, Any]:
        try:
            return tomllib.loads(_read_text(self.folder / "pyproject.toml"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{self.prefix}pyproject.toml: it cannot be read: {error}") from error

    @property
    def test_folder(self) -> str:
        """The folder of the suite in the repository: below the project's own tests."""
        options = _get_table(self._pyproject, "tool", "pytest", "ini_options")
        paths = options.get("testpaths")
        first = paths.split()[0] if isinstance(paths, str) and paths.split() else None
        if isinstance(paths, list) and paths and isinstance(paths[0], str):
            first = paths[0]
        if first is None:
            names = ("tests", "test")
            first = next((name for name in names if (self.folder / name).is_dir()), "tests")
        return f"{self.prefix}{first.strip('/')}/episodes"

    @property
    def install_commands(self) -> tuple[str, ...]:
        """The commands that install the project and what its tests need."""
        if self.uses_uv:
            return ("pip install uv", f"uv sync {' '.join(self._list_sync_options())}")
        if (self.folder / "requirements.txt").is_file():
            return (f"pip install -r {self.prefix}requirements.txt",)
        if not (self.folder / "pyproject.toml").is_file():
            return ()
        place = f"./{self.prefix.rstrip('/')}" if self.prefix else "."
        extra, group = self._find_test_requirements()
        if extra is not None:
            return (f"pip install '{place}[{extra}]'",)
        if group is not None:
            return (f"pip install {place} --group {self.prefix}pyproject.toml:{group}",)
        return (f"pip install {place}",)

    @property
    def uses_uv(self) -> bool:
        """Whether uv resolves the dependencies, by a lock or by `[tool.uv]`, as pip would not."""
        return self._has_lock or bool(_get_table(self._pyproject, "tool", "uv"))

    @property
    def _has_lock(self) -> bool:
        """Whether the project, or the workspace that it is a member of, has a `uv.lock`."""
        folders = (self.folder, *self.folder.parents)
        inside = folders[: folders.index(self.root) + 1]
        return any((folder / "uv.lock").is_file() for folder in inside)

    def _list_sync_options(self) -> Iterator[str]:
        """Yield options of `uv sync`, for the environment of the suite and this project alone."""
        yield "--active --inexact"  # pytest and our plugin's packages stay
        if self._has_lock:
            yield "--locked"
        if self.prefix:
            yield f"--directory {self.prefix.rstrip('/')}"
        extra, group = self._find_test_requirements()
        if extra is not None:
            yield f"--extra {extra}"
        elif group is not None:
            yield f"--group {group}"

    def _find_test_requirements(self) -> tuple[str | None, str | None]:
        """Return the extra, or else the dependency group, of the project's tests."""
        extras = _get_table(self._pyproject, "project", "optional-dependencies")
        groups = _get_table(self._pyproject, "dependency-groups")
        for name in _TEST_GROUPS:
            if name in extras:
                return name, None
            if name in groups:
                return None, name
        return None, None

    @property
    def is_flat(self) -> bool:
        """Whether tests import modules from the project's folder, where plain `pytest` fails."""
        if self.agent is not None:
            return not self.agent.file.startswith("src/")
        return any(self.folder.glob("*.py"))

    @property
    def pytest_file(self) -> str | None:
        """The file with pytest's configuration; None: there is none."""
        for name, section in _PYTEST_FILES.items():
            if section in _read_text(self.folder / name):
                return name
        return None

    @property
    def framework(self) -> KnownFramework | None:
        """The agent framework among the dependencies, or that the code imports."""
        return find_required_framework(iter(self._requirements)) or (
            self.agent.agent.framework if self.agent else None
        )

    @property
    def key(self) -> str | None:
        """The environment variable with the key of the agent's model; None without an agent."""
        if self.framework is None:
            return None
        text = "\n".join(self._requirements).lower()
        return next((key for name, key in _KEYS.items() if name in text), "OPENAI_API_KEY")

    @cached_property
    def agent(self) -> FoundAgent | None:
        """An agent that the project's code defines, in the file that most likely starts it."""
        sources = itertools.islice(self._iterate_sources(), MAX_SOURCES)
        found = [
            FoundAgent(path.as_posix(), _name_module(path), agent)
            for path in sources
            if (agent := find_agent(_read_text(self.folder / path, MAX_SOURCE_BYTES))) is not None
        ]
        return min(found, key=_rate_agent, default=None)

    @property
    def own_workflow(self) -> str | None:
        """A workflow that uses agent-eval already."""
        folder = self.root / ".github/workflows"
        for path in sorted(folder.glob("*.y*ml")):
            if _USES_US.search(_read_text(path)):
                return path.relative_to(self.root).as_posix()
        return None

    @cached_property
    def _requirements(self) -> tuple[str, ...]:
        files = sorted(self.folder.glob("requirements*.txt"))
        lines = [line for path in files for line in _read_text(path).splitlines()]
        project = _get_table(self._pyproject, "project")
        lists = [project.get("dependencies")]
        lists += _get_table(project, "optional-dependencies").values()
        lists += _get_table(self._pyproject, "dependency-groups").values()
        for entries in lists:
            if isinstance(entries, list):
                lines += [entry for entry in entries if isinstance(entry, str)]
        return (*lines, *_get_table(self._pyproject, "tool", "poetry", "dependencies"))

    def _iterate_sources(self) -> Iterator[Path]:
        """Yield the Python files of the project without its tests, relative to its folder."""
        for folder, folders, names in os.walk(self.folder):
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith((".", "test")) and name not in _SKIPPED
            )
            relative = Path(folder).relative_to(self.folder)
            for name in sorted(names):
                if name.endswith(".py") and not name.startswith(("test_", "conftest")):
                    yield relative / name


_LIKELY_NAMES = ("agent", "agents", "main", "app", "graph", "__init__")


def _rate_agent(found: FoundAgent) -> tuple[int, int, str]:
    stem = Path(found.file).stem
    rank = _LIKELY_NAMES.index(stem) if stem in _LIKELY_NAMES else len(_LIKELY_NAMES)
    return (rank, found.file.count("/"), found.file)


def _name_module(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    if parts[0] == "src" and len(parts) > 1:
        parts = parts[1:]
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def _read_text(path: Path, limit: int = 10_000_000) -> str:
    """Return a file's text; empty if it cannot be read, or is too long."""
    try:
        return path.read_text("utf-8") if path.stat().st_size <= limit else ""
    except (OSError, ValueError):
        return ""


def _get_table(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = data.get(name)
        data = value if isinstance(value, dict) else {}
    return data
