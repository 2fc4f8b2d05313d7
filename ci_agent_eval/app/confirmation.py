"""`agent-eval run --confirm`: run base and head again in turn, where the head is worse.

Whatever goes wrong ends the confirmation; the file then says why, and every drop stays one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ci_agent_eval.analysis.comparison.confirmation import (
    BLOCKS,
    ITERATIONS,
    MAX_SAMPLE,
    SAMPLE_ITERATIONS,
)
from ci_agent_eval.analysis.comparison.model import Comparison, ScenarioComparison, SuiteChange
from ci_agent_eval.analysis.loaded_results import LoadedResults, build_episode_record
from ci_agent_eval.analysis.summary import Totals, summarize_results
from ci_agent_eval.app.install import run_install_commands
from ci_agent_eval.contract.budgets import Budget, SuiteBudgets
from ci_agent_eval.contract.results import (
    RESULTS_NAME,
    SESSION_NAME,
    UNNAMED_SUITE,
    Confirmation,
    ConfirmationRun,
    RepeatedScenario,
    Results,
    Session,
    Side,
)
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.report import Report
from ci_agent_eval.results.confirmation import find_run_problem, hash_file
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.progress import RunProgress
from ci_agent_eval.runner.suite import SuiteRun, run_suite
from ci_agent_eval.storage.git import GitError, describe_failure, run_git
from ci_agent_eval.storage.regular_file import open_regular
from ci_agent_eval.storage.run_folder import ReportFolder

_PREFIX = "agent-eval-base-"
_TREE = "tree"
_REMEDY = "fetch the history (actions/checkout: fetch-depth: 0), or name another confirm-base"


@dataclass(frozen=True, slots=True)
class BaseCheckout:
    """The base's files and environment."""

    commit: str
    folder: Path
    """Temporary folder for everything about the base."""
    root: Path
    """The base's copy of the folder that the suite runs in."""
    python: str


@dataclass(frozen=True, slots=True)
class Repository:
    """The git repository of a folder."""

    root: Path
    search_path: str = os.defpath

    def find_merge_base(self, ref: str) -> str | None:
        """Return the merge base of HEAD and a branch or commit; None: it is HEAD itself.

        Raises InputError if it is not there.
        """
        head = self._parse_commit("HEAD")
        commit = self._parse_commit(ref)
        base = self._ask("merge-base", head, commit)
        if not base:
            raise InputError(f"confirm: git finds no merge base of HEAD and {ref} here; {_REMEDY}")
        return None if base == head else base

    def _parse_commit(self, ref: str) -> str:
        name = f"{ref}^{{commit}}"
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        if done.returncode and b"not a git repository" in done.stderr:
            raise InputError(
                "confirm: this folder is in no git repository; check the code out before"
            )
        if done.returncode:
            raise InputError(f"confirm: git knows no commit {ref} here; {_REMEDY}")
        return os.fsdecode(done.stdout).strip()

    @contextmanager
    def check_out(self, commit: str, python: str, *, copy: bool) -> Iterator[BaseCheckout]:
        """Check a commit out in a temporary worktree, and remove it in the end.

        `copy` makes a copy of the interpreter's virtual environment as it is now, for the base
        to install into. Raises InputError.
        """
        self._remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        tree = folder / _TREE
        with ReportFolder(folder).hold_lock():
            try:
                self._add_worktree(tree, commit)
                prefix = self._ask("rev-parse", "--show-prefix")
                base_python = copy_environment(python, folder / "environment") if copy else python
                yield BaseCheckout(commit, folder, tree / prefix, base_python)
            finally:
                self._remove(folder)

    def _add_worktree(self, tree: Path, commit: str) -> None:
        done = self._run("worktree", "add", "--quiet", "--detach", str(tree), commit)
        if done.returncode:
            last = describe_failure(done)
            raise InputError(f"confirm: the base cannot be checked out: {last}; {_REMEDY}")

    def _remove_abandoned(self) -> None:
        """Remove the worktrees of runs that were killed."""
        for line in self._ask("worktree", "list", "--porcelain").splitlines():
            tree = Path(line.removeprefix("worktree "))
            folder = tree.parent
            if (
                line == f"worktree {tree}"
                and tree.name == _TREE
                and folder.name.startswith(_PREFIX)
            ):
                self._remove_unlocked(folder)
        self._run("worktree", "prune")

    def _remove_unlocked(self, folder: Path) -> None:
        """Remove a folder, unless the run that made it still works there."""
        try:
            with ReportFolder(folder).hold_lock():
                self._remove(folder)
        except (InputError, FileNotFoundError):
            return

    def _remove(self, folder: Path) -> None:
        self._run("worktree", "remove", "--force", "--force", str(folder / _TREE))
        shutil.rmtree(folder, ignore_errors=True)

    def _ask(self, *arguments: str) -> str:
        """Return what a command prints; empty if it fails."""
        done = self._run(*arguments)
        return "" if done.returncode else os.fsdecode(done.stdout).strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.root, arguments, search_path=self.search_path)
        except GitError as error:
            raise InputError(f"confirm: {error}; confirming needs git") from None


def copy_environment(python: str, target: Path) -> str:
    """Copy the virtual environment of an interpreter; return the copy's interpreter.

    The programs in it start with the path of their interpreter, which is replaced. Raises
    InputError if the interpreter is not in a virtual environment.
    """
    source = Path(python).parent.parent
    if not (source / "pyvenv.cfg").is_file():
        raise InputError(
            f"confirm: {python} is not in a virtual environment; confirm needs one to copy: choose "
            "it with --python"
        )
    try:
        shutil.copytree(source, target, symlinks=True)
        for program in (target / "bin").iterdir():
            if program.is_file() and not program.is_symlink():
                _replace_interpreter(program, os.fsencode(source), os.fsencode(target))
    except (OSError, shutil.Error) as error:
        raise InputError(f"confirm: {source} cannot be copied: {str(error)[:200]}") from None
    return str(target / "bin" / Path(python).name)


def _replace_interpreter(program: Path, source: bytes, target: bytes) -> None:
    data = program.read_bytes()
    if data.startswith(b"#!"):
        # pip writes long paths, and those with spaces, into the second line.
        program.write_bytes(data.replace(source + b"/bin/", target + b"/bin/", 1))


def find_base_ref(configured: str | None, environ: Mapping[str, str], *baseline: str | None) -> str:
    """Return the branch or commit that the base is on: the first that is known.

    `baseline` are the baseline's ref and commit. Raises InputError if nothing is known.
    """
    branch = environ.get("GITHUB_BASE_REF")
    names = (configured, f"origin/{branch}" if branch else None, *baseline)
    for name in names:
        if name:
            return name
    raise InputError(
        "confirm: neither this event nor the baseline names the base branch; set confirm-base, "
        "such as origin/main"
    )


Echo = Callable[[str], None]


def plan_repeats(report: Report) -> tuple[RepeatedScenario, ...]:
    """Return the scenarios to run again; empty if no drop fails the gate.

    They are those that gate by a regression, and for a drop of the suite a sample of all.
    """
    if not isinstance(report.comparison, Comparison):
        return ()
    reasons = report.verdict.reasons
    doubted = {r.scenario_id for r in reasons if r.kind == "regression"}
    drops = [r.message for r in reasons if isinstance(r.message, SuiteChange)]
    sample = {name for drop in drops for name in _draw_sample(report, report.comparison, drop)}
    names = {s.scenario_id: s.renamed_from for s in report.comparison.scenarios}
    return tuple(
        RepeatedScenario(
            scenario_id=name,
            was=was,
            iterations=ITERATIONS if name in doubted else SAMPLE_ITERATIONS,
        )
        for name, was in sorted(names.items())
        if name in doubted or name in sample
    )


def _draw_sample(report: Report, found: Comparison, drop: SuiteChange) -> Sequence[str]:
    """Return scenarios of a measure, in the order of their hashes: the same for the same suite."""
    mode = "strict" if drop.measure == "pass_rate" else "evaluation"
    modes = {s.scenario_id: s.mode for s in report.summary.scenarios}
    names = {
        s.scenario_id
        for s in found.scenarios
        if modes.get(s.scenario_id) == mode and _is_measured(s, drop)
    }
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:MAX_SAMPLE]


def _is_measured(scenario: ScenarioComparison, drop: SuiteChange) -> bool:
    sides = (scenario.before, scenario.after)
    is_judged = all(side is not None and side.judged for side in sides)
    return is_judged and (scenario.required or drop.measure != "pass_rate")


@dataclass(slots=True)
class ConfirmationJob:
    """Runs the blocks, and collects their results."""

    command: SuiteCommand
    """The run to confirm."""
    base: BaseCheckout
    install: Sequence[Sequence[str]]
    environ: Mapping[str, str]
    echo: Echo
    on_progress: Callable[[RunProgress], None]
    spent: Totals
    """The part of the suite's budgets that the run itself used."""
    runs: list[ConfirmationRun] = field(default_factory=list)
    interrupted: SuiteRun | None = None
    """The run that a signal ended."""

    def confirm(self, scenarios: Sequence[RepeatedScenario]) -> Confirmation:
        """Run the blocks of both sides in turn."""
        self.echo(
            f"confirm: {pluralize(len(scenarios), 'scenario')} again, on the base "
            f"{self.base.commit[:7]} and here, in {BLOCKS} blocks"
        )
        ended = self._install_base() or next(self._list_endings(scenarios), None)
        if ended is not None:
            self.echo(f"confirm: {ended}; nothing is confirmed or excused")
        return Confirmation(
            suite=self.command.suite or UNNAMED_SUITE,
            commit=self.command.commit,
            base_commit=self.base.commit,
            results=hash_file(self.command.report_dir / RESULTS_NAME),
            blocks=BLOCKS,
            scenarios=tuple(scenarios),
            ended=ended,
            runs=tuple(self.runs),
        )

    def _install_base(self) -> str | None:
        problem = run_install_commands(
            self.install,
            self.base.python,
            root=self.base.root,
            environ=self.environ,
            echo=self.echo,
        )
        return None if problem is None else f"on the base, {problem.splitlines()[0]}"

    def _list_endings(self, scenarios: Sequence[RepeatedScenario]) -> Iterator[str]:
        """Run all blocks; yield why one could not be used. The next would be a waste."""
        for block in range(1, BLOCKS + 1):
            sides: tuple[Side, ...] = ("base", "head") if block % 2 else ("head", "base")
            for side in sides:
                problem = self._run_side(side, block, scenarios)
                if problem is not None:
                    yield problem

    def _run_side(
        self, side: Side, block: int, scenarios: Sequence[RepeatedScenario]
    ) -> str | None:
        budgets, used_up = self._subtract_spent()
        name = f"block {block}, {side}"
        if used_up is not None:
            return f"{name}: the suite budget {used_up} is used up"
        self.echo(f"confirm: {name}")
        folder = self.base.folder / "runs" / f"{block}-{side}"
        folder.mkdir(parents=True)
        command = self._build_command(side, folder, scenarios)
        done = run_suite(
            replace(command, budgets=budgets),
            environ=self.environ,
            emit=self.echo,
            on_progress=self.on_progress,
        )
        if done.interrupted_by is not None:
            self.interrupted = done
            return f"{name}: it was interrupted"
        if done.usage_error is not None:
            return f"{name}: pytest: {done.usage_error}"
        try:
            run = _read_run(folder, side, block)
        except (OSError, ValueError):  # includes pydantic's ValidationError
            return f"{name}: it left no results"
        self.runs.append(run)
        return find_run_problem(run)

    def _build_command(
        self, side: Side, folder: Path, scenarios: Sequence[RepeatedScenario]
    ) -> SuiteCommand:
        command, own = self.command, self.command.cwd or Path.cwd()
        other = own.resolve() if side == "base" else None
        iterations = {s.scenario_id: s.iterations for s in scenarios}
        if side == "base":
            iterations |= {s.was: s.iterations for s in scenarios if s.was is not None}
            command = replace(
                command,
                cwd=self.base.root,
                python=self.base.python,
                commit=self.base.commit,
                paths=_keep_existing(command.paths, self.base.root),
                suite_paths=_keep_existing(command.suite_paths, self.base.root),
            )
        again = folder.with_suffix(".json")
        document = {"iterations": iterations, "other_checkout": other and str(other)}
        again.write_text(json.dumps(document), encoding="utf-8")
        return replace(command, report_dir=folder, again=again)

    def _subtract_spent(self) -> tuple[SuiteBudgets, str | None]:
        """Return the rest of the hard budgets, and the name of one that is used up."""
        left: dict[str, Budget] = {}
        for kind, budget in self.command.budgets.iter_named():
            used = sum(getattr(totals, kind.total) or 0 for totals in self._list_totals())
            if budget.hard and kind.spent is not None:
                if used >= budget.limit:
                    return SuiteBudgets(), kind.name
                left[kind.name] = budget.model_copy(update={"limit": budget.limit - used})
        return SuiteBudgets(**left), None

    def _list_totals(self) -> Iterator[Totals]:
        yield self.spent
        for run in self.runs:
            loaded = LoadedResults(
                episodes=tuple(map(build_episode_record, run.episodes)), sessions=(run.session,)
            )
            yield summarize_results(loaded, budgets=self.command.budgets).totals


def _keep_existing(paths: Sequence[str], root: Path) -> Sequence[str]:
    """Leave out the paths that the base does not have yet; pytest would refuse them."""
    return [p for p in paths if (root / p.partition("::")[0]).exists()] or paths


def _read_run(folder: Path, side: Side, block: int) -> ConfirmationRun:
    with open_regular(folder / SESSION_NAME) as file:
        session = Session.model_validate_json(file.read())
    with open_regular(folder / RESULTS_NAME) as file:
        episodes = Results.model_validate_json(file.read()).episodes
    return ConfirmationRun(side=side, block=block, session=session, episodes=episodes)
