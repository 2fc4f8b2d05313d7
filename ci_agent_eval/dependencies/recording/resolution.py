"""Build the dependencies of a run from what its processes have seen.

What a process runs only once (a cached function, a lazy initialization) is seen in one episode and
counts for all that can reach it: a function that ran anywhere, and whose name a reached function
uses, is reached, too. So is each function that has the name of an offered tool, with all functions
that it may call: a model that did not call the tool this time may call it the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from ci_agent_eval.contract.dependencies import UnknownDependency
from ci_agent_eval.dependencies.code_blocks import CodeBlocks, list_imports, parse_code, split_code
from ci_agent_eval.dependencies.model import Reached
from ci_agent_eval.dependencies.recording.accesses import Access
from ci_agent_eval.dependencies.recording.part import ProcessPart, ScenarioPart
from ci_agent_eval.dependencies.recording.places import Function

ReadFile = Callable[[str], bytes | None]
"""Returns a file of the repository, or the target of a symbolic link; None: there is none."""

_HOST_MARK = "://"
"""A declared dependency with it is a host."""


@dataclass(frozen=True, slots=True)
class FileStates:
    """The state of the repository's files when the run has ended."""

    read: ReadFile
    is_tracked: Callable[[str], bool]
    is_new: Callable[[str], bool]
    """Whether the run created or changed a file that git does not track."""


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """The dependencies of a run's scenarios, with the files that they refer to."""

    shared: Reached
    scenarios: Mapping[str, Reached]
    imports: Mapping[str, frozenset[str]]
    hashes: Mapping[str, str]
    requests: Mapping[str, str]


def resolve_dependencies(
    parts: Sequence[ProcessPart], files: FileStates, known_hosts: frozenset[str]
) -> ResolvedRun:
    """Return the dependencies of all scenarios; `known_hosts` are those of models and proxies."""
    run = _merge_parts(parts)
    resolver = _Resolver(run, files, known_hosts)
    scenarios = {name: resolver.resolve(one) for name, one in sorted(run.scenarios.items())}
    shared = resolver.resolve_shared()
    paths = {
        path for one in (shared, *scenarios.values()) for path in (*one.code_files, *one.files)
    }
    hashes = {path: _hash_bytes(files.read(path)) for path in sorted({*paths, *resolver.code})}
    return ResolvedRun(
        shared=shared,
        scenarios=scenarios,
        imports=resolver.graph,
        hashes={path: digest for path, digest in hashes.items() if digest is not None},
        requests={
            name: sha256("\0".join(sorted(one.requests)).encode()).hexdigest()
            for name, one in run.scenarios.items()
            if one.requests
        },
    )


def _hash_bytes(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


@dataclass(slots=True)
class _MergedParts:
    has_functions: bool
    modules: set[tuple[str, str, str]] = field(default_factory=set)
    outside_modules: set[tuple[str, str]] = field(default_factory=set)
    shared: ScenarioPart = ScenarioPart()  # noqa: RUF009 - frozen
    imports: dict[str, ScenarioPart] = field(default_factory=dict)
    opened: dict[Function, dict[Access, bool]] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    scenarios: dict[str, ScenarioPart] = field(default_factory=dict)

    def list_functions(self) -> set[Function]:
        """Return all functions that ran anywhere."""
        parts = (self.shared, *self.imports.values(), *self.scenarios.values())
        return {function for part in parts for function in part.functions if function[1]}


def _merge_parts(parts: Sequence[ProcessPart]) -> _MergedParts:
    merged = _MergedParts(all(part.unit == "function" for part in parts))
    for part in parts:
        merged.modules.update(part.modules)
        merged.outside_modules.update(part.outside_modules)
        merged.shared |= part.shared
        merged.written |= part.written
        for into, found in ((merged.imports, part.imports), (merged.scenarios, part.scenarios)):
            for name, one in found.items():
                into[name] = into.get(name, ScenarioPart()) | one
        for function, access, is_indirect in part.opened:
            known = merged.opened.setdefault(function, {})
            known[access] = known.get(access, False) or is_indirect
    return merged


class _Resolver:
    def __init__(self, run: _MergedParts, files: FileStates, known_hosts: frozenset[str]) -> None:
        self._run = run
        self._files = files
        self._known_hosts = known_hosts
        self.code: dict[str, CodeBlocks | None] = {}
        self.graph: dict[str, frozenset[str]] = {}
        self._parse_modules()
        self._executed = run.list_functions()
        self._closures: dict[frozenset[str], frozenset[str]] = {}

    def _parse_modules(self) -> None:
        by_name = {name: file for name, _, file in self._run.modules}
        packages: dict[str, set[str]] = {}
        for _, package, file in sorted(self._run.modules):
            tree = parse_code(self._files.read(file) or b"")
            if tree is None:
                self.code[file] = None
                continue
            named = {part for name in list_imports(tree, package) for part in _list_prefixes(name)}
            imported = {by_name[name] for name in named if name in by_name} - {file}
            self.graph[file] = self.graph.get(file, frozenset()) | imported
            for name in named:
                packages.setdefault(name.partition(".")[0], set()).add(file)
            self.code[file] = split_code(tree)
        self._add_outside_modules(packages)

    def _add_outside_modules(self, importers: Mapping[str, Iterable[str]]) -> None:
        """Count a module from elsewhere for the files that import its package, or for all."""
        run = self._run
        for name, path in run.outside_modules:
            found = ScenarioPart(accesses=frozenset({("outside_file", path)}))
            files = importers.get(name.partition(".")[0], ())
            for file in files:
                run.imports[file] = run.imports.get(file, ScenarioPart()) | found
            if not files:
                run.shared |= found

    @cached_property
    def _by_name(self) -> Mapping[str, frozenset[Function]]:
        """All functions of the project, by simple name."""
        found: dict[str, set[Function]] = {}
        for file, blocks in self.code.items():
            for name in () if blocks is None else blocks.bodies:
                found.setdefault(name.rpartition(".")[2], set()).add((file, name))
        return {name: frozenset(functions) for name, functions in found.items()}

    def resolve(self, part: ScenarioPart) -> Reached:
        """Return a scenario's dependencies, without those that all scenarios share."""
        ran = frozenset(function for function in part.functions if function[1])
        roots = frozenset(file for file, _ in part.functions) | part.test_files
        closure = self._find_closure(roots)
        tools, modules = self._find_tools(part.tools, closure)
        functions = self._expand(ran, closure, self._executed) | self._expand(tools, closure, None)
        accesses = set(part.accesses)
        accesses |= set(self._list_opened(functions, ran))
        if not self._run.has_functions:
            # Its fixtures are not seen: those of every conftest.py count.
            closure = self._find_closure(roots | self._list_conftests())
            modules |= part.test_files | self._list_conftests()
            accesses |= set(self._list_opened(frozenset(self._list_all(closure)), frozenset()))
            functions = frozenset()
        for file in closure:
            found = self._run.imports.get(file, ScenarioPart())
            functions |= found.functions
            accesses |= found.accesses | set(self._list_opened(found.functions, frozenset()))
        bare = frozenset((file, "") for file in part.test_files)
        return self._build(part, functions | bare, modules, accesses)

    def resolve_shared(self) -> Reached:
        """Return the dependencies of every scenario."""
        shared = self._run.shared
        functions = shared.functions if self._run.has_functions else frozenset()
        computed = frozenset(self.code) - self._find_closure(self._list_roots())
        accesses = {one for one in shared.accesses if not _is_declarable(one)}
        for file in computed:
            accesses |= self._run.imports.get(file, ScenarioPart()).accesses
        return self._build(shared, functions, computed, accesses)

    def _list_roots(self) -> frozenset[str]:
        """Return the files that pytest itself imports."""
        tests = {file for one in self._run.scenarios.values() for file in one.test_files}
        named = {
            file
            for name, _, file in self._run.modules
            if name.rpartition(".")[2].startswith(("test_", "conftest")) or name.endswith("_test")
        }
        return frozenset(tests | named)

    def _list_conftests(self) -> frozenset[str]:
        named = (file for _, _, file in self._run.modules)
        return frozenset(file for file in named if file.rpartition("/")[2] == "conftest.py")

    def _list_all(self, closure: Iterable[str]) -> Iterator[Function]:
        for file in closure:
            blocks = self.code.get(file)
            yield (file, "")
            yield from () if blocks is None else ((file, name) for name in blocks.bodies)

    def _find_closure(self, roots: frozenset[str]) -> frozenset[str]:
        if roots not in self._closures:
            found, pending = set(roots), list(roots)
            while pending:
                new = self.graph.get(pending.pop(), frozenset()) - found
                found |= new
                pending.extend(new)
            self._closures[roots] = frozenset(found)
        return self._closures[roots]

    def _find_tools(
        self, tools: Iterable[str], closure: frozenset[str]
    ) -> tuple[frozenset[Function], frozenset[str]]:
        """Return the functions of offered tools, and all modules for a tool without one."""
        found: set[Function] = set()
        for tool in tools:
            named = {one for one in self._by_name.get(tool, ()) if one[0] in closure}
            if not named:
                return frozenset(), closure
            found |= named
        return frozenset(found), frozenset()

    def _expand(
        self, start: frozenset[Function], closure: frozenset[str], among: set[Function] | None
    ) -> frozenset[Function]:
        """Return functions and all that they can call, of the closure and `among`, if given."""
        found, pending = set(start), list(start)
        while pending:
            file, name = pending.pop()
            blocks = self.code.get(file)
            for used in () if blocks is None else blocks.names.get(name, ()):
                for one in self._by_name.get(used, ()):
                    if one[0] in closure and one not in found and (among is None or one in among):
                        found.add(one)
                        pending.append(one)
        return frozenset(found)

    def _list_opened(
        self, functions: frozenset[Function], ran: frozenset[Function]
    ) -> Iterator[Access]:
        """Yield what functions accessed that did not run here, or through another package."""
        for function in functions:
            for access, is_indirect in self._run.opened.get(function, {}).items():
                if is_indirect or function not in ran:
                    yield access

    def _build(
        self,
        part: ScenarioPart,
        functions: frozenset[Function],
        modules: frozenset[str],
        accesses: set[Access],
    ) -> Reached:
        if part is not self._run.shared:
            accesses |= {one for one in self._run.shared.accesses if _is_declarable(one)}
        hosts = frozenset(
            one.partition(_HOST_MARK)[2] for one in part.patterns if _HOST_MARK in one
        )
        patterns = frozenset(one for one in part.patterns if _HOST_MARK not in one)
        tracked, untracked = self._split_files(accesses)
        unknown = {
            UnknownDependency(cause=kind, detail=detail)
            for kind, detail in accesses
            if kind in _UNKNOWN_KINDS
            and not (kind == "child_process" and patterns)
            and not (kind == "host" and detail in self._known_hosts | hosts)
        }
        unknown |= {UnknownDependency(cause="untracked_file", detail=one) for one in untracked}
        return Reached(
            functions=functions,
            modules=modules,
            files=tracked,
            folders=_select(accesses, "folder"),
            absent=_select(accesses, "absent"),
            variables=_select(accesses, "variable"),
            tools=part.tools,
            hosts=_select(accesses, "host"),
            patterns=patterns,
            unknown=frozenset(unknown),
        )

    def _split_files(self, accesses: set[Access]) -> tuple[frozenset[str], set[str]]:
        """Return the tracked files, and the others, without those that the run made."""
        paths = _select(accesses, "file")
        tracked = frozenset(path for path in paths if self._files.is_tracked(path))
        others = {path for path in paths - tracked if path not in self._run.written}
        return tracked, {path for path in others if not self._files.is_new(path)}


_UNKNOWN_KINDS = frozenset(
    {"child_process", "host", "native_code", "outside_file", "symlink", "unwatched"}
)


def _is_declarable(access: Access) -> bool:
    """Return whether a test can declare what an access of all scenarios depends on."""
    return access[0] in {"child_process", "host"}


def _select(accesses: set[Access], kind: str) -> frozenset[str]:
    return frozenset(detail for found, detail in accesses if found == kind)


def _list_prefixes(name: str) -> Iterator[str]:
    """Yield a dotted name and the packages that it is in."""
    while name:
        yield name
        name = name.rpartition(".")[0]
