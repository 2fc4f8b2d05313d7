"""Running a suite from its command to its files.

The suite never sees the reporter's token. What it prints reaches the caller line by line
without secrets, and secrets are taken out of the JUnit file that pytest itself writes.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import JUNIT_NAME, ScenarioListing
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.runner.interpreter import Interpreter, inspect_interpreter, provide_plugin
from ci_agent_eval.runner.process import MAX_LINE, Child, forward_signals, start_child
from ci_agent_eval.runner.progress import JournalTail, RunProgress
from ci_agent_eval.storage.regular_file import open_regular_text, replace_file
from ci_agent_eval.storage.run_folder import ReportFolder

_REPORTER_VARIABLES = frozenset(
    {
        "GITHUB_TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "GITHUB_OUTPUT",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_STATE",
    }
)
"""Variables that let their bearer write to the repository, or speak for the reporter to
GitHub's runner."""

_INPUT = "INPUT_"
"""Beginning of the variables that hold an action's inputs, the token among them."""

_LISTING_OPTIONS = frozenset(
    {
        *("--collect-only", "--collectonly", "--co", "--help", "-h", "--version", "-V", "-VV"),
        *("--fixtures", "--funcargs", "--fixtures-per-test", "--markers", "--cache-show"),
    }
)

_MISUSED = 4
"""pytest's exit status for arguments and paths that it cannot use (its `ExitCode`)."""
_USAGE_ERROR = re.compile(
    r"(?:\x1b\[[0-9;]*m)*(?:ERROR: (?!usage: )|[^:]+: error: )(?P<sentence>[^\x1b\n]+)"
)
"""How pytest says which of them, with colours where they are forced."""
_LAST_LINES = 50

PROGRESS_SECONDS = 0.5
GRACE_SECONDS = 10.0
"""What an interrupted suite has for its teardown; GitHub's runner itself gives 7.5 s."""


def filter_suite_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a suite, or a command that sets it up, gets to see."""
    return {
        name: value
        for name, value in environ.items()
        if name not in _REPORTER_VARIABLES and not name.upper().startswith(_INPUT)
    }


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """Which suite to run, with what, and where its files go."""

    report_dir: Path
    paths: Sequence[str] = ()
    """Of this one run; none: those of the suite."""
    pytest_args: Sequence[str] = ()
    """Of this one run, besides those of the suite."""
    suite_paths: Sequence[str] = ()
    """Paths that define the suite."""
    suite_args: Sequence[str] = ()
    """Arguments that define the suite, so that none of them restricts the run."""
    python: str = sys.executable
    shard: str | None = None
    """Part of the suite to run, such as `2/4`; None: all of it."""
    suite: str | None = None
    commit: str | None = None
    """The commit that the results are about, a pull request's head; kept in `session.json`."""
    budgets: SuiteBudgets = field(default_factory=SuiteBudgets)
    """The run is stopped at those that are hard."""
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables set for the suite on top of the inherited ones."""

    @property
    def all_args(self) -> Sequence[str]:
        """The arguments for pytest, in order."""
        return (*self.suite_args, *self.pytest_args)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """How a run ended."""

    exit_status: int
    """pytest's, or 128 and the number of the signal that ended it."""
    interrupted_by: signal.Signals | None = None
    """The signal that reached this program and was passed on."""
    killed_by: signal.Signals | None = None
    """The signal that ended the suite's process."""
    progress: RunProgress = field(default_factory=RunProgress)
    usage_error: str | None = None
    """What pytest said of an argument or path that it could not use."""
    only: str | None = None
    """The argument for which pytest ran nothing, such as `--collect-only`."""


def run_suite(
    command: SuiteCommand,
    *,
    environ: Mapping[str, str],
    emit: Callable[[str], None],
    on_progress: Callable[[RunProgress], None] | None = None,
    grace_s: float = GRACE_SECONDS,
) -> SuiteRun:
    """Run the suite and return how it ended; both callbacks run on the caller's thread.

    `emit` gets every line the suite prints, without secrets. `on_progress` gets a value
    when it has changed, about twice a second. Raises InputError where the interpreter
    cannot run the suite, or the report directory holds files of others under our names.
    """
    environ = {**environ, **command.environ}
    redactor = Redactor.from_environ(environ)
    suite = _Suite.of(command, environ)
    _clear_report_folder(command.report_dir)
    last: deque[str] = deque(maxlen=_LAST_LINES)

    def remember(line: str) -> None:
        last.append(line)
        emit(line)

    version = suite.interpreter.get_version("pytest")
    with suite.started(
        lambda plugin: build_suite_command(command, plugin, version), grace_s
    ) as child:
        progress = _watch_child(
            child, redactor, JournalTail(command.report_dir), remember, on_progress
        )
    redact_xml(command.report_dir / JUNIT_NAME, redactor)
    run = replace(
        _build_result(child, progress),
        usage_error=_find_usage_error(last) if child.process.returncode == _MISUSED else None,
        only=find_listing_option(command.all_args),
    )
    ReportFolder(command.report_dir).note_process_status(run.exit_status)
    return run


def _find_usage_error(lines: Iterable[str]) -> str | None:
    """Return pytest's own sentence; None where something else ended it, such as a conftest.py."""
    found = [match["sentence"].strip() for match in map(_USAGE_ERROR.match, lines) if match]
    return "; ".join(found) or None


def list_scenarios(
    command: SuiteCommand,
    *,
    environ: Mapping[str, str],
    emit: Callable[[str], None],
    grace_s: float = GRACE_SECONDS,
) -> ScenarioListing:
    """Collect the suite and return its scenarios; no test of it runs.

    `emit` gets what the suite prints where it cannot be collected. Raises InputError then, and
    where the interpreter cannot run the suite.
    """
    environ = {**environ, **command.environ}
    redactor = Redactor.from_environ(environ)
    suite = _Suite.of(command, environ)
    with TemporaryDirectory(prefix="agent-eval-") as folder:
        file = Path(folder) / "scenarios.json"
        with suite.started(
            lambda plugin: _build_listing_command(command, plugin, file), grace_s
        ) as run:
            lines = list(redactor.lines(filter(None, run.lines(PROGRESS_SECONDS))))
        status = run.process.returncode
        listing = _read_listing(file) if status in _COLLECTED else None
    if listing is None:
        for line in lines:
            emit(line)
        raise InputError(
            f"the suite cannot be collected (pytest ended with status {status}); its output above "
            "says why"
        )
    return listing


_COLLECTED = (0, 5)
"""pytest's exit statuses after a collection without errors: with tests and without any."""


def _read_listing(file: Path) -> ScenarioListing | None:
    try:
        return ScenarioListing.model_validate_json(file.read_bytes())
    except (OSError, ValueError):  # pydantic's errors are such
        return None


@dataclass(frozen=True, slots=True)
class _Suite:
    """The interpreter of a suite, and the environment it sees."""

    interpreter: Interpreter
    environ: Mapping[str, str]
    cwd: Path | None

    @classmethod
    def of(cls, command: SuiteCommand, environ: Mapping[str, str]) -> _Suite:
        """Ask the interpreter; raises InputError where it cannot run the suite."""
        for_suite = filter_suite_environ(environ)
        interpreter = inspect_interpreter(command.python, for_suite)
        interpreter.require_suite_support()
        return cls(interpreter, for_suite, command.cwd)

    @contextmanager
    def started(self, arguments: Callable[[str], list[str]], grace_s: float) -> Iterator[Child]:
        """Start pytest, and stop it at the end if need be; `arguments` takes the plugin's name."""
        with ExitStack() as stack:
            adopt = stack.enter_context(forward_signals())
            plugin, lent = stack.enter_context(provide_plugin(self.interpreter))
            child = start_child(
                arguments(plugin), _extend_pythonpath(self.environ, lent), self.cwd, grace_s
            )
            stack.callback(child.stop)
            adopt(child)
            yield child


def build_suite_command(
    command: SuiteCommand, plugin: str, pytest_version: tuple[int, ...]
) -> list[str]:
    """Return the argument list; paths stand last, behind `--`, so that none is an option.

    Evaluations below the paths run, too: the plugin that is named, and lent where the suite
    has none, knows the option for it.
    Ours stand behind the user's: of an option that is given twice the last one counts. Where
    the user stops the run at a budget of his own, that is the one.
    """
    report_dir = command.report_dir.absolute()
    ours = ["--episode-watched", f"--episode-report-dir={report_dir}"]
    ours += [f"--override-ini={setting}" for setting in _select_assertion_settings(pytest_version)]
    if find_listing_option(command.all_args) is None:
        # pytest would write the file all the same, of a run that was none.
        ours.append(f"--junit-xml={report_dir / JUNIT_NAME}")
    if command.shard is not None:
        ours.append(f"--shard={command.shard}")
    if command.suite is not None:
        ours.append(f"--episode-suite={command.suite}")
    if command.commit is not None:
        ours.append(f"--episode-commit={command.commit}")
    return _build_pytest_command(
        command, plugin, before=_budget_options(command.budgets), behind=ours
    )


def _build_listing_command(command: SuiteCommand, plugin: str, listing: Path) -> list[str]:
    ours = ("--collect-only", "-q", f"--episode-list={listing}")
    return _build_pytest_command(command, plugin, before=(), behind=ours)


def _build_pytest_command(
    command: SuiteCommand, plugin: str, *, before: Iterable[str], behind: Iterable[str]
) -> list[str]:
    """Return pytest's arguments, with ours before and behind the options of the user."""
    suite_options, suite_paths = _split_paths(command.suite_args)
    options, paths = _split_paths(command.pytest_args)
    asked = [*paths, *command.paths]
    told = f"--episode-asked={json.dumps([*options, '--', *asked])}"
    program = (command.python, "-u", "-m", "pytest", "-p", plugin)
    named = [*suite_paths, *paths, *(command.paths or command.suite_paths)]
    return [*program, *before, *suite_options, *options, "--eval", *behind, told, "--", *named]


def _select_assertion_settings(pytest_version: tuple[int, ...]) -> Sequence[str]:
    """Return the settings with which pytest explains a failed assertion alike everywhere.

    By itself it explains more where `CI` is set, or with `-vv`; older versions do so unless they
    explain everything.
    """
    if pytest_version < (8, 4):
        return ("verbosity_assertions=2",)
    return ("verbosity_assertions=1", "truncation_limit_lines=0", "truncation_limit_chars=0")


def _budget_options(budgets: SuiteBudgets) -> Iterator[str]:
    """Yield the plugin's options for what the gate does not forgive."""
    for kind, budget in budgets.iter_named():
        if kind.spent is not None and budget.hard:
            limit = math.floor(budget.limit) if kind.is_whole else budget.limit
            yield f"--{kind.name.replace('_', '-')}={limit}"


def _split_paths(pytest_args: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Part the arguments at their `--`, behind which everything is a path."""
    if "--" not in pytest_args:
        return pytest_args, ()
    at = pytest_args.index("--")
    return pytest_args[:at], pytest_args[at + 1 :]


def find_listing_option(pytest_args: Sequence[str]) -> str | None:
    """Return the argument with which pytest only lists or prints something; None for none."""
    return next((argument for argument in pytest_args if argument in _LISTING_OPTIONS), None)


def _clear_report_folder(report_dir: Path) -> None:
    """Remove a former run's files, so that none of them is taken for this run's."""
    try:
        ReportFolder(report_dir).clear(with_junit=True)
    except OSError as error:
        raise InputError(
            f"{report_dir}: cannot be written ({error.strerror}); choose another --report-dir"
        ) from None


def _extend_pythonpath(environ: Mapping[str, str], lent: Path | None) -> Mapping[str, str]:
    if lent is None:
        return environ
    known = environ.get("PYTHONPATH")
    return {**environ, "PYTHONPATH": f"{lent}{os.pathsep}{known}" if known else str(lent)}


def _watch_child(
    child: Child,
    redactor: Redactor,
    tail: JournalTail,
    emit: Callable[[str], None],
    on_progress: Callable[[RunProgress], None] | None,
) -> RunProgress:
    """Hand on lines and progress until the child has ended; return the last progress."""
    shown = RunProgress()
    next_look = 0.0

    def look() -> None:
        nonlocal shown, next_look
        next_look = time.monotonic() + PROGRESS_SECONDS
        progress = tail.progress()
        changed = progress != shown
        shown = progress
        if changed and on_progress is not None:
            on_progress(progress)

    def lines() -> Iterator[str]:
        for line in child.lines(PROGRESS_SECONDS):
            if line is not None:
                yield line
            if time.monotonic() >= next_look:
                look()

    for line in redactor.lines(lines()):
        emit(line)
    look()
    return shown


def _build_result(child: Child, progress: RunProgress) -> SuiteRun:
    status = child.process.returncode
    killed_by = signal.Signals(-status) if status < 0 else None
    return SuiteRun(
        exit_status=status if killed_by is None else 128 + killed_by,
        interrupted_by=child.interrupted_by,
        killed_by=killed_by,
        progress=progress,
    )


def redact_xml(path: Path, redactor: Redactor) -> None:
    """Take the secrets out of an XML file, in one step.

    What is not there, or is no regular file, is left so: the loader names it.
    """
    try:
        source = open_regular_text(path)
    except OSError:
        return
    with source, replace_file(path) as target:
        target.writelines(redactor.xml_lines(_iter_chunks(source)))


def _iter_chunks(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MAX_LINE):
        yield line
