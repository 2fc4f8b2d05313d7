"""Settings: flags over environment over configuration file, checked as a whole."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from ci_agent_eval.comparison.model import ComparePolicy
from ci_agent_eval.contract.base import KnownKeys, Rate, unknown_key
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.problems import plain_message
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.options import DEFAULT_ARTIFACT, OPTIONS, Option

CONFIG_NAME = "agent-eval.toml"
PYPROJECT_TABLE = "tool.ci_agent_eval"

OTHER_VARIABLES = ("AGENT_EVAL_PYTHON", "AGENT_EVAL_DEBUG", "AGENT_EVAL_JUNIT_CORPUS")
"""Variables of this program that are no options: the suite's interpreter, tracebacks, our tests."""


class GateSettings(KnownKeys):
    """`[gate]`: what a run must show."""

    min_pass_rate: Rate = 1.0
    max_error_rate: Rate = 0.0
    allow_skipped: bool = False
    eval_min_pass_rate: Rate | None = None
    eval_min_score: Rate | None = None


Condition = Literal["model", "tools", "prices", "judge"]


class CompareSettings(KnownKeys):
    """`[compare]`: what a run is held against, and what follows from it."""

    baseline: str | None = Field(default=None, min_length=1)
    runs: int = Field(default=10, ge=1, le=1000)
    artifact: str = Field(default=DEFAULT_ARTIFACT, min_length=1)
    level: float = Field(default=0.05, gt=0, lt=0.5)
    min_drop: Rate = 0.2
    across: tuple[Condition, ...] = ()
    gate: Literal["fail", "warn"] = "fail"
    max_cost_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_latency_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("across", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Take apart what a variable or input names in one text."""
        return tuple(re.split(r"[\s,]+", value.strip(" ,"))) if isinstance(value, str) else value

    @property
    def policy(self) -> ComparePolicy:
        """When a drop is called one."""
        return ComparePolicy(self.level, self.min_drop, frozenset(self.across))


class PublishSettings(KnownKeys):
    """`[publish]`: what is sent to GitHub."""

    comment: Literal["update", "off"] = "update"
    comment_author: str | None = None
    check_run: bool = True
    check_name: str = Field(default="agent-eval", min_length=1)


class Settings(KnownKeys):
    """Everything that can be configured, from every source at once."""

    suite: str = Field(default="default", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    report_dir: str = Field(default="agent-eval-report", min_length=1)
    paths: tuple[str, ...] = Field(default=(), description="what `run` gives pytest")
    pytest_args: tuple[str, ...] = ()
    results: tuple[str, ...] = Field(default=(), description="what `report` reads as episodes")
    junit: tuple[str, ...] = Field(default=(), description="what `report` reads as JUnit XML")
    gate: GateSettings = Field(default_factory=GateSettings)
    budgets: SuiteBudgets = Field(default_factory=SuiteBudgets)
    compare: CompareSettings = Field(default_factory=CompareSettings)
    publish: PublishSettings = Field(default_factory=PublishSettings)

    @property
    def policy(self) -> GatePolicy:
        """The gate's policy."""
        return GatePolicy(
            min_pass_rate=self.gate.min_pass_rate,
            max_error_rate=self.gate.max_error_rate,
            allow_skipped=self.gate.allow_skipped,
            eval_min_pass_rate=self.gate.eval_min_pass_rate,
            eval_min_score=self.gate.eval_min_score,
            regressions=self.compare.gate,
            max_cost_increase=self.compare.max_cost_increase,
            max_latency_increase=self.compare.max_latency_increase,
        )

    @property
    def check_name(self) -> str:
        """The check run's name; a suite of its own name has a check run of its own."""
        name = self.publish.check_name
        return name if self.suite == "default" else f"{name} ({self.suite})"


def load_settings(
    *,
    root: Path,
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    config: Path | None = None,
) -> Settings:
    """Put settings together: `flags` (by option name) over `environ` over the file.

    The file is `config`, else `agent-eval.toml` in `root`, else the table
    `[tool.ci_agent_eval]` of `pyproject.toml` there. Raises InputError with the place.
    """
    _refuse_unknown_variables(environ)
    path, text, table = _load_file(root, config)
    origins: dict[tuple[str, ...], str] = {}
    values: dict[str, Any] = dict(table)
    for option in OPTIONS:
        for origin, given in (
            (f"environment variable {option.variable}", environ.get(option.variable) or None),
            (f"option --{option.name}", flags.get(option.name)),
        ):
            if given is not None:
                _set(values, option.key, _typed(option, given, origin))
                origins[option.key] = origin
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error, path, text, origins)) from None


def _load_file(root: Path, config: Path | None) -> tuple[str, str, dict[str, Any]]:
    """Return the file's name, its text, and our table in it; all empty without a file."""
    if config is not None:
        text = _read(config)
        table = _parse(config.name, text)
        is_pyproject = config.name == "pyproject.toml"
        return str(config), text, _own_table(table) if is_pyproject else table
    if (root / CONFIG_NAME).is_file():
        text = _read(root / CONFIG_NAME)
        return CONFIG_NAME, text, _parse(CONFIG_NAME, text)
    if (root / "pyproject.toml").is_file():
        text = _read(root / "pyproject.toml")
        return "pyproject.toml", text, _own_table(_parse("pyproject.toml", text))
    return "", "", {}


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = (*(option.variable for option in OPTIONS), *OTHER_VARIABLES)
    for name in environ:
        if name.startswith("AGENT_EVAL_") and name not in known:
            raise InputError(f"environment: {unknown_key(name, known)}")


def _own_table(document: Mapping[str, Any]) -> dict[str, Any]:
    tool = document.get("tool")
    for misspelt in ("agent-eval", "agent_eval", "ci-agent-eval"):
        if isinstance(tool, Mapping) and misspelt in tool:
            raise InputError(
                f"pyproject.toml: [tool.{misspelt}] is not read; call it [{PYPROJECT_TABLE}]"
            )
    table = tool.get("ci_agent_eval", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(table, dict):
        raise InputError(f"pyproject.toml: [{PYPROJECT_TABLE}] must be a table")
    return table


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check --config") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: is not valid TOML: {error}") from None


def _typed(option: Option, given: object, origin: str) -> object:
    """Turn the text of a number into one; all other texts are read as the file's would be."""
    if option.kind != "number" or not isinstance(given, str):
        return given
    try:
        return float(given)
    except ValueError:
        raise InputError(f"{origin}: must be a number (given: {given!r})") from None


def _set(values: dict[str, Any], key: tuple[str, ...], given: object) -> None:
    """Set a nested key, copying the tables on the way."""
    *tables, last = key
    for name in tables:
        inner = values.get(name)
        values[name] = dict(inner) if isinstance(inner, Mapping) else {}
        values = values[name]
    values[last] = given


def _sentence(
    error: ValidationError, path: str, text: str, origins: Mapping[tuple[str, ...], str]
) -> str:
    """Say of the first problem where it stands, what it is, and what was given."""
    first = error.errors(include_url=False)[0]
    location = tuple(str(part) for part in first["loc"])
    message = plain_message(first)
    key = ".".join(location)
    for option_key, origin in origins.items():
        if location[: len(option_key)] == option_key:
            return f"{origin}: {message} (given: {first['input']!r})"
    line = _line_of(text, location, message)
    where = f"{path}:{line}" if line else path
    return f"{where}: {f'{key}: ' if key else ''}{message}"


def _line_of(text: str, location: tuple[str, ...], message: str) -> int | None:
    """Find the line that sets the key, good enough to point a person at it."""
    unknown = re.match(r"unknown key '([^']*)'", message)
    for name in ([unknown[1]] if unknown else []) + list(reversed(location)):
        pattern = re.compile(rf"\s*(?:\[[\w.]*)?[\"']?{re.escape(name)}[\"']?\s*(?:=|\]|\.)")
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.match(line):
                return number
    return None
