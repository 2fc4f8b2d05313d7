"""Measure each mutation: what changes in truth, and what the product selects."""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.affected_mutations.behaviours import Behaviours, find_changed, load_behaviours
from tests.affected_mutations.copies import Workplace
from tests.affected_mutations.mutation import Mutation
from tests.affected_mutations.processes import WarmProcess, run_cold


@dataclass(frozen=True)
class Selection:
    """The product's answer."""

    scenarios: frozenset[str]
    is_complete: bool = False
    """The product runs everything, or refuses to run: no scenario is carried over."""


class Selector(Protocol):
    """Ask the product which scenarios it would run in a copy."""

    def __call__(self, copy: Path, environ: dict[str, str], workplace: Workplace) -> Selection: ...


@dataclass(frozen=True)
class Measurement:
    """The truth about one mutation, and the product's answer."""

    mutation: Mutation
    changed: frozenset[str]
    selected: frozenset[str]
    scenarios: frozenset[str]
    """All scenarios, of the baseline and of the mutated project."""
    is_complete: bool

    @property
    def missed(self) -> frozenset[str]:
        return self.changed - self.selected - self.mutation.removes

    @property
    def needless(self) -> frozenset[str]:
        return self.selected - self.changed

    @property
    def unchanged(self) -> frozenset[str]:
        return self.scenarios - self.changed


class Harness:
    """Runs the project's baseline, then mutations of it; a context manager."""

    def __init__(self, workplace: Workplace, selector: Selector, workers: int, *, cold: bool) -> None:
        self._workplace = workplace
        self._selector = selector
        self._workers = workers
        self._cold = cold
        self._exit = ExitStack()
        self._warm: queue.SimpleQueue[WarmProcess] = queue.SimpleQueue()
        self._base: Behaviours = {}
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> Harness:
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
        code = run_cold(command, place.project, place.build_environ(), log)
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
        selection = self._selector(copy, environ, self._workplace)
        runs = [self._run_truth(mutation, copy, f"{name}-{number}") for number in (1, 2)]
        scenarios = frozenset(self._base.keys()).union(*runs)
        selected = scenarios if selection.is_complete else selection.scenarios
        changed = find_changed(self._base, *runs)
        shutil.rmtree(copy)
        return Measurement(mutation, changed, selected, scenarios, selection.is_complete)

    def _run_truth(self, mutation: Mutation, copy: Path, name: str) -> Behaviours:
        """Run all scenarios; a run that ends early has the behaviours that it stored."""
        report = self._workplace.root / "truth" / name
        log = self._workplace.root / f"{name}.log"
        arguments = ["-q", "--episode-report-dir", str(report)]
        environ = self._workplace.build_environ(mutation.environ)
        if mutation.is_cold or self._warm.empty() and self._cold or not self._base:
            run_cold(["-m", "pytest", *arguments], copy, environ, log)
        else:
            process = self._warm.get()
            process.run_pytest(arguments, copy, environ, log)
            self._warm.put(process)
        return load_behaviours(report)
