"""Measure each mutation: what changes in truth, and what the product selects."""

from __future__ import annotations

import hashlib
import json
import queue
import shutil
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from tests.affected_mutations.behaviours import Behaviours, find_changed, load_behaviours
from tests.affected_mutations.copies import PROJECT, Workplace
from tests.affected_mutations.mutation import Mutation
from tests.affected_mutations.processes import WarmProcess, run_command


@dataclass(frozen=True)
class Selection:
    """The product's answer."""

    scenarios: frozenset[str]
    scope: Literal["partial", "full", "refused", "crashed"]
    """A command that refuses to answer carries nothing over, and no run passes."""
    detail: str = ""


class Selector(Protocol):
    """Ask the product which scenarios it would run in a copy."""

    def __call__(
        self, copy: Path, environ: dict[str, str], workplace: Workplace, *, cold: bool
    ) -> Selection: ...


@dataclass(frozen=True)
class Truth:
    """What a mutation changes."""

    changed: frozenset[str]
    scenarios: frozenset[str]
    """All scenarios, of the baseline and of the mutated project."""


@dataclass(frozen=True)
class Measurement:
    """The truth about one mutation, and the product's answer."""

    mutation: Mutation
    truth: Truth
    selection: Selection

    @property
    def selected(self) -> frozenset[str]:
        is_everything = self.selection.scope in ("full", "refused")
        return self.truth.scenarios if is_everything else self.selection.scenarios

    @property
    def missed(self) -> frozenset[str]:
        return frozenset() if self.mutation.blind_spot else self.unseen

    @property
    def unseen(self) -> frozenset[str]:
        """What changed and was not selected, with the blind spots."""
        return self.truth.changed - self.selected - self.mutation.removes

    @property
    def needless(self) -> frozenset[str]:
        return self.selected - self.truth.changed

    @property
    def unchanged(self) -> frozenset[str]:
        return self.truth.scenarios - self.truth.changed


class TruthFile:
    """Truths of earlier runs of the harness, one JSON line each, so that only the product is asked.

    The key contains the whole project, the mutation and the version of Python.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path and path.exists() else []
        self._truths = {key: truth for key, *truth in map(json.loads, lines)}
        files = sorted(path for path in PROJECT.rglob("*") if path.is_file())
        content = [(str(file.relative_to(PROJECT)), file.read_bytes()) for file in files]
        self._project = f"{sys.version} {content}"

    def find(self, mutation: Mutation) -> Truth | None:
        found = self._truths.get(self._build_key(mutation))
        return Truth(*map(frozenset, found)) if found else None

    def store(self, mutation: Mutation, truth: Truth) -> None:
        if self._path:
            line = [self._build_key(mutation), sorted(truth.changed), sorted(truth.scenarios)]
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def _build_key(self, mutation: Mutation) -> str:
        return hashlib.sha256(f"{self._project} {mutation}".encode()).hexdigest()


class Harness:
    """Runs the project's baseline, then mutations of it; a context manager."""

    def __init__(
        self,
        workplace: Workplace,
        selector: Selector,
        workers: int,
        truths: TruthFile,
        *,
        cold: bool,
    ) -> None:
        self._workplace = workplace
        self._selector = selector
        self._workers = workers
        self._truths = truths
        self._cold = cold
        self._exit = ExitStack()
        self._warm: queue.SimpleQueue[WarmProcess] = queue.SimpleQueue()
        self._base: Behaviours = {}
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> Self:
        self._workplace.create_project()
        self._base = self._record_baseline()
        if not self._cold:
            for _ in range(self._workers):
                process = WarmProcess(self._workplace.build_environ())
                self._warm.put(self._exit.enter_context(process))
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _record_baseline(self) -> Behaviours:
        """Run the suite with the real command; all scenarios pass, twice in the same way."""
        place = self._workplace
        log = place.root / "baseline.log"
        command = ["-m", "ci_agent_eval", "run", "--report-dir", str(place.baseline)]
        code = run_command(command, place.project, place.build_environ(), log)
        base = load_behaviours(place.baseline)
        if code != 0 or not base or None in base.values():
            raise RuntimeError(f"the baseline failed: {log.read_text('utf-8')}")
        again = self._run_truth(Mutation("none", "none"), place.project, "baseline-again")
        if changed := find_changed(base, again):
            raise RuntimeError(f"these scenarios do not repeat themselves: {sorted(changed)}")
        return base

    def measure_mutations(self, mutations: Sequence[Mutation]) -> Iterable[Measurement]:
        """Measure in parallel; those that change shared files follow one after the other."""
        inside = [mutation for mutation in mutations if not mutation.is_outside]
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(self._measure, inside)
        for mutation in mutations:
            if mutation.is_outside:
                yield self._measure(mutation)
                self._workplace.restore_outside()

    def _measure(self, mutation: Mutation) -> Measurement:
        with self._lock:
            self._count += 1
            name = f"copy-{self._count}"
        copy = self._workplace.create_copy(mutation, name)
        environ = self._workplace.build_environ(mutation.environ)
        selection = self._selector(
            copy, environ, self._workplace, cold=mutation.is_cold or self._cold
        )
        truth = self._truths.find(mutation) or self._find_truth(mutation, copy, name)
        shutil.rmtree(copy)
        return Measurement(mutation, truth, selection)

    def _find_truth(self, mutation: Mutation, copy: Path, name: str) -> Truth:
        """Run all scenarios twice."""
        runs = [self._run_truth(mutation, copy, f"{name}-{number}") for number in (1, 2)]
        scenarios = frozenset(self._base.keys()).union(*runs)
        truth = Truth(find_changed(self._base, *runs), scenarios)
        self._truths.store(mutation, truth)
        return truth

    def _run_truth(self, mutation: Mutation, copy: Path, name: str) -> Behaviours:
        """Run all scenarios; a run that ends early has the behaviours that it stored."""
        report = self._workplace.root / "truth" / name
        log = self._workplace.root / f"{name}.log"
        arguments = ["-q", "--episode-report-dir", str(report)]
        environ = self._workplace.build_environ(mutation.environ)
        if mutation.is_cold or self._cold or not self._base:
            run_command(["-m", "pytest", *arguments], copy, environ, log)
        else:
            process = self._warm.get()
            process.run_pytest(arguments, copy, environ, log)
            self._warm.put(process)
        return load_behaviours(report)
