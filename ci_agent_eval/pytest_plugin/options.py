"""The plugin's options, ini settings, marker and hooks for other plugins, and their readers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange, parse_iterations_text
from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.engine.cassette.misses import ReplaceRule

WORKER_DIR = "episode_report_dir"
"""Key of an xdist worker's input that holds the report directory."""

ADAPTIVE_STOPS = "agent_eval_adaptive_stops"
"""Key under which an xdist worker sends why its adaptive scenarios stopped."""

ASSERT_MODULES = "episode_assert_modules"
"""Ini setting that names modules whose asserts count as assertions of episodes."""

CASSETTE_MODES = ("off", "record", "replay", "auto")

MARKER_HELP = (
    "episode(scenario_id=None, budgets=None, gate='required', min_pass_rate=None, "
    "min_passes=None, iterations=None, allowed_stops=None, faults=None, agent=None, model=None, "
    "metadata=None, was=None, alone=None, evidence='required', depends_on=None): an agent "
    "episode; scenario_id defaults to the node id, gate is 'required' or 'advisory', iterations to "
    "--aitest-iterations, allowed_stops names the ends without an answer that do not fail it, "
    "faults lists faults of tools on purpose, "
    "was names the scenario ids it had before, alone=True lets no other run beside it, False "
    "lets any, evidence='none' lets it pass without a turn, a tool call or an assertion, "
    "depends_on lists the files that can change its result (ci-agent-eval)"
)

SESSION_MARKER = "session"
"""Name of the marker, the same as in pytest-skill-engineering."""

SESSION_MARKER_HELP = (
    "session(name): the agents' runs by `aitest_run` in all tests with this name are one "
    "conversation, in the order of the tests (ci-agent-eval)"
)


def require_pydantic() -> None:
    """Raise pytest.UsageError unless pydantic 2 or newer is installed."""
    try:
        found = metadata.version("pydantic")
    except metadata.PackageNotFoundError:
        found = "none"
    if not found.partition(".")[0].isdigit() or int(found.partition(".")[0]) < 2:
        raise pytest.UsageError(
            f"ci-agent-eval needs pydantic 2 or newer where episodes run, and found {found}; "
            "install it into this environment, or run without -p ci_agent_eval"
        )


class EpisodeHooks:
    """The hooks that other plugins and conftest files implement; docs/public-api.md."""

    def pytest_agent_eval_columns(
        self, item: pytest.Item, episode: Episode
    ) -> Mapping[str, bool | float | str] | None:
        """Return values for the reports of an ended episode, by the name of their column."""

    def pytest_agent_eval_episode(self, item: pytest.Item, episode: Episode) -> None:
        """Take an ended episode, as `results.json` has it: without secrets, with its columns."""


def parse_whole_number(text: str) -> int:
    """Parse a whole number of at least 1; raises argparse's error, which pytest prints as usage."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"give a whole number, 1 or more (got {text!r})")
    return int(text)


def _check_iterations(text: str) -> str:
    """Return the text, which xdist can send to its workers; raises argparse's error."""
    try:
        parse_iterations_text(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


_FLAG: Mapping[str, Any] = {"action": "store_true"}
_HIDDEN = argparse.SUPPRESS

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--episode-report-dir": {
        "metavar": "DIR",
        "help": "write episodes, session.json and results.json to DIR (default: write nothing)",
    },
    "--episode-suite": {
        "metavar": "NAME",
        "help": "name of the suite in the results (default: default)",
    },
    "--episode-commit": {"metavar": "SHA", "help": "commit under test, kept in session.json"},
    # Only for `agent-eval run`, which adds to session.json how pytest's process ended.
    "--episode-watched": {**_FLAG, "help": _HIDDEN},
    # Only for `agent-eval`: the arguments of this one run, as a JSON list.
    "--episode-asked": {"help": _HIDDEN},
    # Only for `agent-eval run --confirm`: a file of scenarios to run again.
    "--episode-again": {"metavar": "FILE", "help": _HIDDEN},
    "--episode-iterations": {
        "type": parse_whole_number,
        "metavar": "N",
        "help": "run each episode N times, whatever its marker and --aitest-iterations say",
    },
    "--episode-scenario": {
        "action": "append",
        "default": [],
        "metavar": "ID",
        "help": "run only the episodes of this scenario; may be repeated",
    },
    # Only for `agent-eval scenarios`: collect, write the scenarios to a file, run nothing.
    "--episode-list": {"metavar": "FILE", "help": _HIDDEN},
    # Only for `agent-eval run`: the file with what adaptive iterations are compared with.
    "--episode-adaptive-plan": {"help": _HIDDEN},
    # Only for `agent-eval run --affected`: the file with what a change touches.
    "--episode-changes": {"metavar": "FILE", "help": _HIDDEN},
    "--aitest-iterations": {
        "metavar": "N",
        "type": _check_iterations,
        "help": "run each episode N times, and other tests once; auto: 3 to 60 times, as many as "
        "the decision needs; auto:MIN-MAX: with other limits (default: 1)",
    },
    "--episode-concurrency": {
        "metavar": "N",
        "type": parse_whole_number,
        "help": "run up to N async episodes at once in each process (default: 1)",
    },
    "--cassette": {
        "metavar": "MODE",
        "choices": CASSETTE_MODES,
        "help": "record models' answers, or replay them without key and network: "
        f"{', '.join(CASSETTE_MODES)}; auto replays what is recorded and records the rest "
        "(default: off)",
    },
    "--cassette-tools": {
        **_FLAG,
        "default": None,
        "help": "record and replay the results of tools, too (default: tools are called in replay)",
    },
    "--cassette-dir": {
        "metavar": "DIR",
        "help": "folder of the cassettes (default: cassettes, beside each test file)",
    },
    "--llm-model": {
        "metavar": "MODEL",
        "help": "model that judges for llm_assert and llm_score (default: openai:gpt-5-mini)",
    },
    "--eval": {
        **_FLAG,
        "help": "collect evaluations (the files of the ini setting eval_files) beside the tests; "
        "one that is named is collected anyway",
    },
    "--eval-strict": {
        **_FLAG,
        "help": "run evaluations as pytest runs any other test: the first failed assert ends it",
    },
    "--eval-results": {
        "metavar": "FILE",
        "help": "write the results of evaluations to FILE (default: eval-results.json in the "
        "report directory, or without one here)",
    },
    "--shard": {
        "metavar": "I/N",
        "help": "run the I-th of N shards: a share of the scenarios, the same on every machine",
    },
    "--shard-durations": {
        "metavar": "PATH",
        "help": "report folder or results.json of an earlier run, to balance the shards by",
    },
    "--enable-pytest-full-suite-steering": {
        **_FLAG,
        "dest": "pytest_full_suite_steering",
        "default": None,
        "help": "hold back, once in each episode, calls of agents that run a whole pytest suite "
        "(default: PYTEST_FULL_SUITE_STEERING_ENABLED, agent-eval-steering.yaml, or off)",
    },
    "--disable-pytest-full-suite-steering": {
        "dest": "pytest_full_suite_steering",
        "action": "store_false",
        "default": None,
        "help": "let it run, whatever the environment and the file say",
    },
}
"""The options, with argparse's settings of each."""

_DEFAULTS = {
    "episode_report_dir": "",
    "episode_suite": "default",
    "cassette": "off",
    "cassette_dir": "",
    "llm_model": "openai:gpt-5-mini",
    "eval_results": "",
}
"""Texts in the ini file that stand for options, with their defaults."""

_LISTS = {
    "cassette_allowed_hosts": (
        "args",
        "hosts beside this machine that tests may connect to in replay, such as a database",
    ),
    "cassette_replace": (
        "linelist",
        (
            "parts of requests that differ from run to run, replaced before a recording is looked "
            "up: lines of `PATTERN => REPLACEMENT`"
        ),
    ),
    ASSERT_MODULES: (
        "args",
        (
            "helper modules, also installed ones, whose asserts pytest rewrites, so that they are "
            "evidence that an episode was judged (default: none)"
        ),
    ),
}
"""Lists in the ini file that no option stands for, with their types and help."""


def add_options(parser: pytest.Parser) -> None:
    """Add the options and the ini settings, mostly of the same names."""
    group = parser.getgroup("episodes", "agent episodes (ci-agent-eval)")
    for option, settings in _OPTIONS.items():
        group.addoption(option, **settings)
    for name, default in _DEFAULTS.items():
        parser.addini(name, _describe_ini(name), default=default)
    for name in ("aitest_iterations", "episode_concurrency"):
        add_number_setting(parser, name, default="1")
    parser.addini("cassette_tools", _describe_ini("cassette_tools"), type="bool", default=False)
    for name, (kind, help_text) in _LISTS.items():
        parser.addini(name, help_text, type=kind, default=[])  # type: ignore[arg-type]  # a literal
    parser.addini(
        "eval_files",
        "glob patterns of evaluations, whose asserts are measured (default: *_eval.py)",
        type="args",
        default=["*_eval.py"],
    )


def _describe_ini(name: str) -> str:
    return f"as --{name.replace('_', '-')}"


def add_number_setting(parser: pytest.Parser, name: str, *, default: str) -> None:
    """Add the ini setting of an option whose value may be a number.

    Native TOML of pytest 9 has numbers, which a setting of strings refuses. Unions are new in 9.2.
    """
    kind: Any = str | int | float if pytest.version_tuple >= (9, 2) else None
    parser.addini(name, _describe_ini(name), type=kind, default=default)


def get_llm_model(config: pytest.Config) -> str:
    """Return the model of `llm_assert` and `llm_score`."""
    return str(config.option.llm_model or config.getini("llm_model")).strip()


def get_cassette_mode(config: pytest.Config) -> str:
    """Return the cassettes' mode. Raises pytest.UsageError for an invalid ini setting."""
    mode = str(config.option.cassette or config.getini("cassette")).strip()
    if mode not in CASSETTE_MODES:
        known = ", ".join(CASSETTE_MODES)
        raise pytest.UsageError(f"ini setting cassette: {mode!r} is not a mode; use {known}")
    return mode


def get_cassette_rules(config: pytest.Config) -> Sequence[ReplaceRule]:
    """Return the replacements in requests. Raises pytest.UsageError for an invalid one."""
    from ci_agent_eval.engine.cassette.misses import parse_rules  # noqa: PLC0415 - inert until used

    try:
        return parse_rules(config.getini("cassette_replace"))
    except InputError as error:
        raise pytest.UsageError(f"ini setting {error}") from error


def has_cassette_tools(config: pytest.Config) -> bool:
    """Return whether cassettes hold what tools return."""
    return bool(config.option.cassette_tools or config.getini("cassette_tools"))


def get_cassette_dir(config: pytest.Config, test_file: Path) -> Path:
    """Return the folder that holds the cassettes of a test file."""
    if config.option.cassette_dir:
        return config.invocation_params.dir / str(config.option.cassette_dir)
    setting = str(config.getini("cassette_dir")).strip()
    return config.rootpath / setting if setting else test_file.parent / "cassettes"


def get_iterations(config: pytest.Config) -> IterationRange:
    """Return the default number of iterations: the option, or the ini setting.

    Raises pytest.UsageError if the ini setting is no number of iterations.
    """
    option: str | None = config.option.aitest_iterations
    if option is not None:
        return parse_iterations_text(option)
    try:
        return parse_iterations_text(str(config.getini("aitest_iterations")).strip())
    except ValueError as error:
        raise pytest.UsageError(f"ini setting aitest_iterations: {error}") from None


def get_concurrency(config: pytest.Config) -> int:
    """Return the number of concurrent episodes per process; raises pytest.UsageError.

    It is 1 with a debugger, and with options that show each test's setup.
    """
    requested = _read_count(config, "episode_concurrency")
    one_by_one = ("usepdb", "trace", "setupshow", "setuponly", "setupplan")
    return 1 if any(config.getoption(name, default=False) for name in one_by_one) else requested


def _read_count(config: pytest.Config, name: str) -> int:
    option: int | None = getattr(config.option, name)
    if option is not None:
        return option
    try:
        return parse_whole_number(str(config.getini(name)).strip())
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini setting {name}: {error}") from None


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def get_worker_id(config: pytest.Config) -> str:
    """Return xdist's id of this worker, or `main`."""
    workerinput: dict[str, Any] = getattr(config, "workerinput", {})
    return str(workerinput.get("workerid", "main"))


def get_report_dir(config: pytest.Config) -> Path | None:
    """Return the report directory, or None if no report is written."""
    if config.option.collectonly:
        return None
    if is_worker(config):
        folder = config.workerinput.get(WORKER_DIR)  # type: ignore[attr-defined]
        return Path(folder) if folder else None
    option = config.option.episode_report_dir or config.getini("episode_report_dir")
    return config.invocation_params.dir / option if option else None


def get_eval_results_option(config: pytest.Config) -> Path | None:
    """Return the file of `--eval-results`, or None if the option was not given."""
    option = config.option.eval_results
    return config.invocation_params.dir / option if option else None


def get_eval_results_path(config: pytest.Config) -> Path | None:
    """Return the evaluation report's path outside of the report directory.

    None if there is a report directory and no other file was requested.
    """
    option_path = get_eval_results_option(config)
    setting = str(config.getini("eval_results")).strip()
    if option_path is not None or (not setting and get_report_dir(config) is not None):
        return option_path
    return config.invocation_params.dir / (setting or "eval-results.json")


def get_suite_name(config: pytest.Config) -> str:
    """Return the suite's name: the option, the ini setting, or `default`."""
    return str(config.option.episode_suite or config.getini("episode_suite"))
