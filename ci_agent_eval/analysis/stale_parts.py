"""Stale parts: what scenarios no longer reach, and what no scenario reaches. Pure.

A recorded function or file may count for a scenario that only could have reached it, such as by a
cache. So a part that no scenario reaches any more is lost only by a scenario that alone reached it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.dependencies.code_blocks import CodeBlocks, parse_code, split_code
from ci_agent_eval.dependencies.model import Reached, RunDependencies

PROMPT_SUFFIXES = (
    *(".md", ".txt", ".prompt", ".jinja", ".jinja2", ".j2", ".mustache", ".hbs", ".yaml", ".yml"),
)
PROMPT_FOLDERS = ("prompt", "instruction", "template")
"""Words, one of which is in the name of a folder of prompts."""
SKILL_NAME = "SKILL.md"

_DOCUMENTATION = ("readme", "changelog", "license", "contributing")
_UNSEEN = frozenset({"child_process", "native_code", "unwatched"})
"""Causes of unknown dependencies that may read any file of the repository."""


@dataclass(frozen=True, slots=True)
class StaleScenario:
    """A passing scenario that lost a dependency, or declares files that do not exist."""

    scenario_id: str
    functions: tuple[tuple[str, str], ...] = ()
    """File and qualified name of functions that are still there."""
    files: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Declared patterns that match no file."""


@dataclass(frozen=True, slots=True)
class StaleParts:
    """The stale parts of a project, each list sorted."""

    scenarios: tuple[StaleScenario, ...] = ()
    prompts: tuple[str, ...] = ()
    """Prompt files that no scenario reads."""
    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Tools that a model was offered and no scenario called."""


@dataclass(frozen=True)
class ProjectTree:
    """The files of the tested commit."""

    paths: frozenset[str]
    """Regular files, relative to the repository root."""
    read: Callable[[str], bytes | None]

    def has_function(self, path: str, name: str) -> bool:
        """Return whether a file has a function of this qualified name."""
        blocks = self._split(path)
        return blocks is not None and name in blocks.bodies

    def names(self, functions: Iterable[tuple[str, str]], wanted: str) -> bool:
        """Return whether one of the functions uses a name."""
        return any(
            blocks is not None and wanted in blocks.names.get(function, ())
            for path, function in functions
            for blocks in [self._split(path)]
        )

    def _split(self, path: str) -> CodeBlocks | None:
        if path not in self._blocks:
            content = self.read(path) if path in self.paths else None
            tree = None if content is None else parse_code(content)
            self._blocks[path] = None if tree is None else split_code(tree)
        return self._blocks[path]

    @cached_property
    def _blocks(self) -> dict[str, CodeBlocks | None]:
        return {}


def find_stale_parts(
    episodes: Sequence[EpisodeRecord],
    now: RunDependencies,
    before: RunDependencies | None,
    tree: ProjectTree,
) -> StaleParts:
    """Return the stale parts that a run of the whole suite shows.

    `before` is the baseline's run, whose dependencies carried-over scenarios still have.
    """
    passing, is_proof = _find_passing(episodes)
    if before is not None:
        carried = {one.scenario_id for one in episodes if one.carried_over is not None}
        now = _add_carried(now, before, carried)
    scenarios = _list_stale_scenarios(now, before, tree, passing)
    found = StaleParts(scenarios=tuple(scenarios))
    if not is_proof or not {one.scenario_id for one in episodes} <= now.scenarios.keys():
        return found
    found = replace(found, tools=tuple(_list_uncalled_tools(episodes)))
    everything = _join(now)
    if any(one.cause in _UNSEEN for one in everything.unknown):
        return found
    read = {path for path in tree.paths if _is_read(path, everything)}
    return replace(
        found,
        prompts=tuple(_list_unread_prompts(tree.paths, read)),
        skills=tuple(_list_unread_skills(tree.paths, read)),
    )


def _find_passing(episodes: Iterable[EpisodeRecord]) -> tuple[frozenset[str], bool]:
    """Return the scenarios of which all episodes passed, and whether each passed at least once."""
    outcomes: dict[str, set[str]] = {}
    for one in episodes:
        outcomes.setdefault(one.scenario_id, set()).add(one.outcome)
    passing = frozenset(name for name, found in outcomes.items() if found == {"passed"})
    return passing, all("passed" in found for found in outcomes.values())


def _add_carried(
    now: RunDependencies, before: RunDependencies, carried: Collection[str]
) -> RunDependencies:
    earlier = {name: before.find_dependencies(name) for name in carried}
    known = {name: one for name, one in earlier.items() if one is not None}
    return replace(now, scenarios={**known, **now.scenarios})


def _join(run: RunDependencies) -> Reached:
    found = run.shared
    for one in run.scenarios.values():
        found |= one
    return found


def _list_stale_scenarios(
    now: RunDependencies,
    before: RunDependencies | None,
    tree: ProjectTree,
    passing: Collection[str],
) -> Iterator[StaleScenario]:
    losses = None if before is None else _Losses(now, before, tree)
    for name, own in sorted(now.scenarios.items()):
        if name not in passing:
            continue
        stale = StaleScenario(
            name,
            functions=() if losses is None else tuple(losses.list_functions(name)),
            files=() if losses is None else tuple(losses.list_files(name)),
            patterns=tuple(
                pattern
                for pattern in sorted(own.patterns)
                if not any(fnmatchcase(path, pattern) for path in tree.paths)
            ),
        )
        if stale.functions or stale.files or stale.patterns:
            yield stale


class _Losses:
    """What scenarios reached in the baseline's run, is still there, and is not reached now."""

    def __init__(self, now: RunDependencies, before: RunDependencies, tree: ProjectTree) -> None:
        self._now = now
        self._before = before
        self._tree = tree
        self._reached = _join(now)
        owners = before.scenarios.values()
        self._function_owners = Counter(one for own in owners for one in own.functions)
        self._file_owners = Counter(path for own in owners for path in own.files)

    def list_functions(self, scenario_id: str) -> Iterator[tuple[str, str]]:
        """Yield the functions, without those of tests; none where only modules are known."""
        own, reached = self._get_sides(scenario_id)
        if {self._now.unit, self._before.unit} != {"function"}:
            return
        for path, name in sorted(own.functions - reached.functions):
            if not name or path in reached.modules or _is_test(path):
                continue
            if not self._tree.has_function(path, name):
                continue
            if (path, name) in self._reached.functions or (
                self._function_owners[path, name] == 1
                and not self._tree.names(reached.functions, name.rpartition(".")[2])
            ):
                yield path, name

    def list_files(self, scenario_id: str) -> Iterator[str]:
        """Yield the files that were read, without code."""
        own, reached = self._get_sides(scenario_id)
        for path in sorted((own.files - reached.files) & self._tree.paths):
            is_lost = path in self._reached.files or self._file_owners[path] == 1
            if is_lost and not path.endswith(".py"):
                yield path

    def _get_sides(self, scenario_id: str) -> tuple[Reached, Reached]:
        own = self._before.scenarios.get(scenario_id, Reached())
        return own, self._now.shared | self._now.scenarios[scenario_id]


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def _is_read(path: str, reached: Reached) -> bool:
    declared = (fnmatchcase(path, pattern) for pattern in reached.patterns)
    return path in reached.files or any(declared)


def _list_unread_prompts(paths: Collection[str], read: Collection[str]) -> Iterator[str]:
    """Yield the unread files of each folder of prompts from which a scenario reads another one."""
    used = {folder for path in read if (folder := _find_prompt_folder(path)) is not None}
    skills = tuple(f"{folder}/" for folder in _list_skills(paths))
    for path in sorted(set(paths) - set(read)):
        if _find_prompt_folder(path) in used and not path.startswith(skills):
            yield path


def _find_prompt_folder(path: str) -> str | None:
    """Return the outermost folder of prompts that a prompt file is in; None: it is none."""
    *folders, name = path.lower().split("/")
    if not name.endswith(PROMPT_SUFFIXES) or name.startswith(_DOCUMENTATION):
        return None
    for depth, folder in enumerate(folders, start=1):
        if any(word in folder for word in PROMPT_FOLDERS):
            return "/".join(folders[:depth])
    return None


def _list_skills(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the file of each skill, by its folder."""
    return {
        path.removesuffix(f"/{SKILL_NAME}"): path
        for path in paths
        if path.endswith(f"/{SKILL_NAME}")
    }


def _list_unread_skills(paths: Collection[str], read: Collection[str]) -> Iterator[str]:
    """Yield the skills that no scenario reads, beside others that one reads."""
    used = {
        folder.rpartition("/")[0] for folder, path in _list_skills(paths).items() if path in read
    }
    for folder, path in sorted(_list_skills(paths).items()):
        if path not in read and folder.rpartition("/")[0] in used:
            yield folder


def _list_uncalled_tools(episodes: Iterable[EpisodeRecord]) -> Iterator[str]:
    """Yield the offered tools that no episode called; calls that are not known count as made."""
    offered: set[str] = set()
    used: set[str] = set()
    for one in episodes:
        tools = set(one.conditions.tools or ())
        offered |= tools
        used |= {step.tool for step in one.steps}
        if one.tool_calls != len(one.steps):
            used |= tools
    yield from sorted(offered - used)
