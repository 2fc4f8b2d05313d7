"""A run of the suite: find the changes and install before it, and confirm its drops after it."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.app.pipeline import Echo, Job, find_baseline, report_loaded, write_report
from ci_agent_eval.app.report_folder import (
    clear_report_folder,
    write_confirmation,
)
from ci_agent_eval.contract.affected import CHANGE_EVENTS, ChangePlan
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.results import SESSION_NAME, AdaptivePlan, PredictedScenario
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.report import Report
from ci_agent_eval.results.load import load_results
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.progress import RunProgress
from ci_agent_eval.runner.suite import SuiteRun, run_suite
from ci_agent_eval.storage.git import GitError, describe_failure, run_git
from ci_agent_eval.storage.run_folder import ReportFolder

if TYPE_CHECKING:
    from ci_agent_eval.app.confirmation import BaseCheckout
    from ci_agent_eval.results.baselines.request import FoundBaseline


_DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


class _NoPlanError(Exception):
    """Why the changes are not known, so that everything runs."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What `--affected` compares."""

    root: Path
    """The folder that the suite runs in."""
    environ: Mapping[str, str]
    started_by: str | None = None
    """Event that started the workflow; None: there is none."""
    base: str | None = None
    """Branch or commit to compare with; None: the pull request's base, else the default branch."""
    ignore: tuple[str, ...] = ()


def plan_changes(request: ChangeRequest) -> ChangePlan | str:
    """Return the changed files, or the reason why everything must run."""
    try:
        return _find_changes(request)
    except _NoPlanError as error:
        return str(error)


def _find_changes(request: ChangeRequest) -> ChangePlan:
    if request.started_by not in CHANGE_EVENTS:
        raise _NoPlanError(f"the event {request.started_by} is not about a pull request")
    git = _Git(request.root, request.environ.get("PATH", os.defpath))
    top = git.ask("rev-parse", "--show-toplevel")
    if top is None:
        raise _NoPlanError("this folder is in no git repository")
    git = _Git(Path(top), git.search_path)
    ref = git.find_base(request.base, request.environ.get("GITHUB_BASE_REF"))
    base = git.find_merge_base(ref)
    git.refuse_base_branch(ref, base)
    diff = ("diff", "--no-renames", "--name-only", "-z", "--no-ext-diff", "--no-relative")
    changed = {*git.list_paths(*diff, "--ignore-submodules=none", base)}
    for path in git.list_paths("ls-files", "--others", "--exclude-standard", "-z"):
        if "__pycache__" not in path.split("/"):
            changed.add(path)
    return ChangePlan(top=top, changed=tuple(sorted(changed)), ignore=request.ignore)


@dataclass(frozen=True, slots=True)
class _Git:
    folder: Path
    search_path: str

    def find_base(self, named: str | None, branch: str | None) -> str:
        """Return the first branch or commit to compare with that is there."""
        names = (named,) if named else (f"origin/{branch}",) if branch else _DEFAULTS
        for name in names:
            if self._find_commit(name) is not None:
                return name
        raise _NoPlanError(
            f"git knows no commit {names[0]} here; fetch it (actions/checkout: fetch-depth: 0), "
            "or name another --base"
        )

    def find_merge_base(self, ref: str) -> str:
        """Return the merge base of HEAD and a branch or commit."""
        found = (
            self.ask("merge-base", "--all", "HEAD", self._find_commit(ref) or "") or ""
        ).split()
        if len(found) != 1:
            raise _NoPlanError(
                f"git finds {'several merge bases' if found else 'no merge base'} of HEAD and {ref}"
                " here; fetch the history (actions/checkout: fetch-depth: 0)"
            )
        return found[0]

    def refuse_base_branch(self, ref: str, base: str) -> None:
        """Raise _NoPlanError on the base branch, which nothing may be left out of."""
        branch = self.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        default = self.ask("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        bases = {name.removeprefix("origin/") for name in (ref, default or ref)}
        if branch in bases or (branch is None and base == self._find_commit("HEAD")):
            raise _NoPlanError(f"HEAD is on the base branch ({ref})")

    def _find_commit(self, ref: str) -> str | None:
        name = f"{ref}^{{commit}}"
        return self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)

    def list_paths(self, *arguments: str) -> Iterator[str]:
        """Yield the paths that a command prints, each ended by a zero byte."""
        done = self._run(*arguments)
        if done.returncode:
            raise _NoPlanError(f"git cannot list the changed files: {describe_failure(done)}")
        yield from filter(None, done.stdout.decode("utf-8", "replace").split("\0"))

    def ask(self, *arguments: str) -> str | None:
        """Return what a command prints; None: it failed, or printed nothing."""
        done = self._run(*arguments)
        return None if done.returncode else done.stdout.decode("utf-8", "replace").strip() or None

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.folder, arguments, search_path=self.search_path)
        except GitError as error:
            raise _NoPlanError(str(error)) from None


@dataclass(frozen=True, slots=True)
class AffectedFlags:
    """`--affected` and `--base`."""

    is_asked: bool = False
    base: str | None = None


def run_and_report(
    job: Job,
    *,
    paths: Sequence[str],
    pytest_args: Sequence[str],
    python: str,
    shard: str | None = None,
    install: Sequence[Sequence[str]] = (),
    color: bool = False,
    affected: AffectedFlags = AffectedFlags(),
    echo: Echo,
    on_progress: Callable[[RunProgress], None],
) -> tuple[SuiteRun, Report]:
    """Install and run the suite, then report its results. Raises InputError.

    `install` are commands for the suite's environment; a failed one is reported like other
    failures. `color`: pytest writes in colour. `affected` asks for the affected scenarios only.
    """
    command = SuiteCommand(
        report_dir=job.folder,
        paths=tuple(paths),
        pytest_args=pytest_args,
        suite_paths=job.settings.paths,
        suite_args=job.settings.pytest_args,
        python=python,
        shard=shard,
        suite=job.settings.suite,
        commit=job.links.sha,
        budgets=job.settings.budgets,
        color=color,
        cwd=job.root,
    )
    folder = ReportFolder(job.folder)
    folder.prepare(with_junit=True)
    with folder.hold_lock(), _stop_workflow_commands(job.environ, echo):
        return _SuiteJob(job, command, install, affected, echo, on_progress).run()


@contextmanager
def _stop_workflow_commands(environ: Mapping[str, str], echo: Echo) -> Iterator[None]:
    """Disable workflow commands in the suite's output, by a random token."""
    if environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    word = secrets.token_hex(16)
    echo(f"::stop-commands::{word}")
    try:
        yield
    finally:
        echo(f"::{word}::")


@dataclass(frozen=True, slots=True)
class _SuiteJob:
    """A run of the suite, with its baseline before and its report after it."""

    job: Job
    command: SuiteCommand
    install: Sequence[Sequence[str]]
    affected: AffectedFlags
    echo: Echo
    on_progress: Callable[[RunProgress], None]

    def run(self) -> tuple[SuiteRun, Report]:
        # Before the suite runs, as it may change the baseline's files in the workspace.
        base = find_baseline(self.job)
        changes = self._find_changes()
        clear_report_folder(self.job.folder, self.job.settings.formats)
        with self._check_out_base(base) as checkout:
            return self._run(base, checkout, changes)

    def _find_changes(self) -> ChangePlan | None:
        """Return the changed files; None: everything runs, as it may be that all is affected."""
        job = self.job
        if not (self.affected.is_asked or job.settings.affected):
            return None
        named = ("--episode-scenario", "--episode-iterations", "--aitest-iterations")
        if any(argument.startswith(named) for argument in self.command.pytest_args):
            return None  # what the command line names always runs
        request = ChangeRequest(
            job.root, job.environ, job.started_by, self.affected.base, job.settings.ignore
        )
        found = plan_changes(request)
        if isinstance(found, ChangePlan):
            return found
        self.echo(f"--affected: everything runs: {found}")
        return None

    def _check_out_base(
        self, base: FoundBaseline | None
    ) -> AbstractContextManager[BaseCheckout | None]:
        """Check the base out if drops must be confirmed; None: no drop can be."""
        compare, environ = self.job.settings.compare, self.job.environ
        if not compare.confirm or compare.gate == "warn":
            return nullcontext()
        if base is None:
            raise InputError("confirm: there is no baseline to confirm a drop from; set baseline")
        if self.command.shard is not None:
            self.echo("confirm: a shard is not compared, so that nothing is confirmed here")
            return nullcontext()
        if isinstance(base.baseline, NoBaseline):
            return nullcontext()
        from ci_agent_eval.app.confirmation import (  # noqa: PLC0415 - rarely needed
            Repository,
            find_base_ref,
        )

        latest = base.baseline.runs[0].commit if base.baseline.runs else None
        ref = find_base_ref(compare.confirm_base, environ, _get_git_ref(compare.baseline), latest)
        repository = Repository(self.job.root, environ.get("PATH", os.defpath))
        commit = repository.find_merge_base(ref)
        if commit is None:
            self.echo(f"confirm: HEAD is an ancestor of {ref}, so that there is no base to run")
            return nullcontext()
        return repository.check_out(commit, self.command.python, copy=bool(self.install))

    def _run(
        self,
        base: FoundBaseline | None,
        checkout: BaseCheckout | None,
        changes: ChangePlan | None,
    ) -> tuple[SuiteRun, Report]:
        job, environ = self.job, self.job.environ
        problem = self._install() if self.install else None
        if problem is not None:
            failed = Finding("install_failed", "install", problem)
            return SuiteRun(1), report_loaded(job, LoadedResults(findings=(failed,)))
        plan = _build_adaptive_plan(job, base)
        command = replace(self.command, adaptive_plan=plan, changes=changes)
        run = run_suite(command, environ=environ, emit=self.echo, on_progress=self.on_progress)
        has_session = run.has_begun and (job.folder / SESSION_NAME).exists()
        if run.usage_error is not None or not has_session:
            missing = LoadedResults(findings=(_describe_missing_session(run),))
            return run, report_loaded(job, missing, base=base)
        report = self._report(base)
        if checkout is None or run.interrupted_by is not None:
            return run, report
        return self._confirm(run, report, base, checkout)

    def _install(self) -> str | None:
        """Run the commands of installation; return the first failure."""
        from ci_agent_eval.app.install import run_install_commands  # noqa: PLC0415 - rarely needed

        return run_install_commands(
            self.install,
            self.command.python,
            root=self.job.root,
            environ=self.job.environ,
            echo=self.echo,
        )

    def _confirm(
        self, run: SuiteRun, report: Report, base: FoundBaseline | None, checkout: BaseCheckout
    ) -> tuple[SuiteRun, Report]:
        """Confirm the drops that fail the gate, and report anew."""
        from ci_agent_eval.app.confirmation import (  # noqa: PLC0415 - rarely needed
            ConfirmationJob,
            plan_repeats,
        )

        scenarios = plan_repeats(report)
        if not scenarios:
            return run, report
        confirming = ConfirmationJob(
            self.command,
            checkout,
            self.install,
            self.job.environ,
            self.echo,
            self.on_progress,
            report.summary.totals,
        )
        write_confirmation(self.job.folder, confirming.confirm(scenarios))
        return confirming.interrupted or run, self._report(base)

    def _report(self, base: FoundBaseline | None) -> Report:
        return write_report(
            self.job,
            lambda: base,
            lambda spool, redact: load_results(
                (),
                (),
                root=self.job.root,
                runs=(self.job.folder,),
                spool=spool,
                redact=redact,
                passed_on_retry=self.job.settings.gate.passed_on_retry,
            ),
        )


def _get_git_ref(baseline: str | None) -> str | None:
    """Return the branch or commit that `git:REF:PATH` names, if the setting is one."""
    from ci_agent_eval.results.baselines.git import PREFIX, parse_git_location  # noqa: PLC0415 - rarely needed

    is_git = baseline is not None and baseline.startswith(PREFIX)
    return parse_git_location(baseline).ref if baseline and is_git else None


def _build_adaptive_plan(job: Job, base: FoundBaseline | None) -> AdaptivePlan:
    """Return the plan by which the run decides on adaptive iterations."""
    gate, policy = job.settings.gate, job.settings.compare.policy
    predicted: tuple[PredictedScenario, ...] = ()
    if base is not None and isinstance(base.baseline, Baseline):
        from ci_agent_eval.analysis.comparison.scenario_test import (  # noqa: PLC0415 - needs NumPy
            predict_scenarios,
        )

        predicted = tuple(predict_scenarios(base.baseline))
    return AdaptivePlan(
        min_pass_rate=gate.min_pass_rate if gate.suite_min_pass_rate is None else None,
        level=policy.level / 2,
        predicted=predicted,
    )


_NEVER_STARTED = {
    4: "it could not use its arguments or paths",
    5: "it found no test",
}
"""Meaning of pytest's exit status without a session (pytest's `ExitCode`)."""


def _describe_missing_session(run: SuiteRun) -> Finding:
    """Return a finding for a pytest run that ended before its session began."""
    if ended_by := run.interrupted_by or run.killed_by:
        return Finding("interrupted", "pytest", f"{ended_by.name} ended it before it had begun")
    if run.usage_error is not None:
        return Finding("collection_error", "pytest", run.usage_error)
    why = _NEVER_STARTED.get(run.exit_status, "it left no session")
    message = f"{why} (status {run.exit_status}); its output above says more"
    if run.only is not None:
        message = f"it ran nothing ({run.only}); take it out of pytest's arguments"
    return Finding("collection_error", "pytest", message)
