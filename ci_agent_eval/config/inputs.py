"""The action's inputs, read from the environment variables of GitHub's runner."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ci_agent_eval.config.options import DEFAULT_ARTIFACT, INPUT_OPTIONS, OPTIONS
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.sharding import normalize_shard

Mode = Literal["run", "report", "publish"]

_MIN_MINOR = 11
"""The oldest Python 3 that runs the plugin."""


@dataclass(frozen=True, slots=True)
class ActionInput:
    """An input of the action alone; the options of `INPUT_OPTIONS` are inputs too."""

    name: str
    help: str
    default: str = ""


ACTION_INPUTS = (
    ActionInput(
        "mode",
        'Task of the job: "run" runs the suite and reports; "report" reports on the result '
        'files of earlier steps; "publish" publishes the report folder of an earlier step or, '
        "started by workflow_run, reports on the artifact of the workflow run that triggered it.",
        default="run",
    ),
    ActionInput(
        "publish",
        'Whether to publish comment, check run and step summary; "false" leaves that to a later '
        'step with mode "publish", which can link to the report uploaded in between.',
        default='"true"',
    ),
    ActionInput(
        "python-version",
        "Python of the suite, such as 3.12, which uv installs with pip, pytest and pydantic. "
        'Default: 3.13, without a compiler, as in the image. Mode "run" only.',
    ),
    ActionInput(
        "install",
        "Commands that install the suite's dependencies into its own virtual environment, one "
        "per line. Each runs directly, without a shell.",
    ),
    ActionInput("paths", 'Files and folders of the suite, for pytest. Mode "run" only.'),
    ActionInput(
        "pytest-args", 'Additional arguments for pytest, quoted as in a shell. Mode "run" only.'
    ),
    ActionInput(
        "shard",
        'Shard of the suite to run, such as "2/4"; a job in mode "report" then reports on all '
        'shards. Mode "run" only.',
    ),
    ActionInput(
        "results",
        "Report folders, files or globs, in our JSON format or another supported runner's. "
        'Mode "report" only.',
    ),
    ActionInput("junit", 'Files or globs of JUnit XML of any producer. Mode "report" only.'),
    ActionInput(
        "jobs-result",
        "Result of the job that ran the tests. Default: this job's; of an upstream job, such as "
        'needs.shard.result. If it is not "success", the gate fails unless a failure in the '
        'results explains it. Mode "report" only.',
        default="${{ job.status }}",
    ),
    ActionInput(
        "artifact",
        f'Name or glob of the artifacts that mode "publish" reads. Default: {DEFAULT_ARTIFACT}.',
    ),
    ActionInput(
        "job-total",
        "Number of jobs of this job's matrix. If there are several, each needs its own suite, "
        "check-name or shard. Leave the default.",
        default="${{ strategy.job-total }}",
    ),
    ActionInput("config", "Configuration file, instead of agent-eval.toml or pyproject.toml."),
    ActionInput(
        "github-token",
        "Token for the comment and the check run. Empty: neither is published.",
        default="${{ github.token }}",
    ),
)


REPORT_MODE = ActionInput(
    "mode",
    'Task of the step: "report" reports on the result files of earlier steps; "publish" publishes '
    "the report folder of an earlier step or, started by workflow_run, reports on the artifact of "
    "the workflow run that triggered it.",
    default="report",
)
"""The input of the action without Docker, which cannot run a suite."""

RUN_INPUTS = frozenset({"python-version", "install", "paths", "pytest-args", "shard"})
"""Names of inputs that only mode "run" reads."""

_MODES: Mapping[str, Mode] = {
    **dict.fromkeys(sorted(RUN_INPUTS), "run"),
    "results": "report",
    "junit": "report",
    "artifact": "publish",
}
"""The only mode that reads an input."""


@dataclass(frozen=True, slots=True)
class ActionInputs:
    """The action's parsed inputs. Lists are given as lines or words, quoted as in a shell."""

    mode: Mode = "run"
    publishes: bool = True
    """False: a later step publishes the report."""
    python_version: str | None = None
    """Version of the suite's Python; None: that of the environment of the suite that is there."""
    install: tuple[tuple[str, ...], ...] = ()
    """Install commands, one per line, split into words; they run without a shell."""
    paths: tuple[str, ...] = ()
    pytest_args: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    junit: tuple[str, ...] = ()
    jobs_result: str = "success"
    """Result of the job that ran the tests, as given by GitHub; for mode "report"."""
    artifact: str = DEFAULT_ARTIFACT
    """Name or glob of the artifacts for mode "publish"."""
    shard: str | None = None
    """Shard to run, such as `2/4`; None: the whole suite."""
    config: str | None = None
    token: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    """Values of the options of `INPUT_OPTIONS` that are set, by name."""


def parse_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """Read `INPUT_*` (upper case, spaces as `_`, hyphens kept); an empty input is unset.

    Raises InputError with the name of a wrong input.
    """
    mode = _parse_mode(_get_input(environ, "mode") or "run")
    _refuse_other_options(environ)
    _refuse_other_modes(environ, mode)
    if mode != "publish":
        _refuse_shared_name(environ)
    return ActionInputs(
        mode=mode,
        publishes=_parse_publish(environ),
        python_version=_parse_python_version(environ),
        install=split_commands("input install", _get_input(environ, "install") or ""),
        paths=_split_input(environ, "paths"),
        pytest_args=_split_input(environ, "pytest-args"),
        results=_split_input(environ, "results"),
        junit=_split_input(environ, "junit"),
        jobs_result=_get_input(environ, "jobs-result") or "success",
        artifact=_get_input(environ, "artifact") or DEFAULT_ARTIFACT,
        shard=normalize_shard(_get_input(environ, "shard"), "input shard"),
        config=_get_input(environ, "config"),
        token=_get_input(environ, "github-token") or "",
        options={o.name: value for o in INPUT_OPTIONS if (value := _get_input(environ, o.name))},
    )


def _get_input(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(f"INPUT_{name.upper().replace(' ', '_')}", "").strip() or None


def _parse_mode(text: str) -> Mode:
    for mode in get_args(Mode):
        if text == mode:
            return mode  # type: ignore[no-any-return]  # an item of the Literal
    raise InputError(f"input mode: {text!r} is not a mode; use run, report or publish")


def _parse_python_version(environ: Mapping[str, str]) -> str | None:
    text = _get_input(environ, "python-version")
    known = text is None or re.fullmatch(r"3\.(\d+)(\.\d+)?", text)
    if known is None or (known is not True and int(known[1]) < _MIN_MINOR):
        raise InputError(
            f"input python-version: {text!r} is not Python 3.11 or newer; write it like '3.12', "
            "with quotes"
        )
    return text


def _refuse_other_options(environ: Mapping[str, str]) -> None:
    """Refuse an option that is no input, which GitHub passes with a warning only."""
    for option in OPTIONS:
        if option not in INPUT_OPTIONS and _get_input(environ, option.name) is not None:
            raise InputError(
                f"input {option.name}: the action has no such input; write "
                f"{'.'.join(option.key)} to agent-eval.toml, or set {option.variable} below `env`"
            )


def _refuse_other_modes(environ: Mapping[str, str], mode: Mode) -> None:
    """Refuse an input that this mode would ignore, unless it has its default."""
    for name, only in _MODES.items():
        value = _get_input(environ, name)
        if mode != only and value not in {None, "false", DEFAULT_ARTIFACT}:
            advice = "; name the folders of all shards as results" if name == "shard" else ""
            told = f"input {name}: only mode {only} reads it, this is mode {mode}"
            raise InputError(f"{told}; leave it out{advice}")


def _refuse_shared_name(environ: Mapping[str, str]) -> None:
    """Refuse the jobs of a matrix that would all publish one check run and one comment."""
    total = _get_input(environ, "job-total") or "1"
    is_named = any(_get_input(environ, name) for name in ("suite", "check-name", "shard"))
    if total.isdecimal() and int(total) > 1 and not is_named and _parse_publish(environ):
        raise InputError(
            f"input suite: this is one of {total} jobs of a matrix, and each would replace the "
            "check run and the comment of the others; add `suite: ${{ matrix.NAME }}` with a "
            "variable of the matrix, or give each job a shard"
        )


def _parse_publish(environ: Mapping[str, str]) -> bool:
    text = _get_input(environ, "publish") or "true"
    if text.lower() not in {"true", "false"}:
        raise InputError(f"input publish: {text!r} is neither true nor false")
    return text.lower() == "true"


def _split_input(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return _split_words(f"input {name}", _get_input(environ, name) or "")


def split_commands(origin: str, text: str) -> tuple[tuple[str, ...], ...]:
    """Split a command on each line into words. Raises InputError that names `origin`."""
    return tuple(words for line in text.splitlines() if (words := _split_words(origin, line)))


def _split_words(origin: str, text: str) -> tuple[str, ...]:
    """Split like a shell, without running one; `#` starts a comment."""
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError as error:
        raise InputError(f"{origin}: {error} in {text.strip()!r}; close the quote") from None
