"""Settings: flags over environment over configuration file, validated together."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, field_validator

from ci_agent_eval.analysis.comparison.model import AllowedIncreases, ComparePolicy
from ci_agent_eval.analysis.waivers import ReportWaivers, evaluate_waivers
from ci_agent_eval.config.options import DEFAULT_ARTIFACT, OPTIONS, Option, OptionKind, check_format
from ci_agent_eval.config.toml_lines import find_line
from ci_agent_eval.contract.base import (
    KnownKeysModel,
    Rate,
    ReportTitle,
    describe_unknown_key,
    find_unknown_key,
    get_plain_message,
)
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import PassedOnRetry
from ci_agent_eval.contract.scenario_manifest import (
    MANIFEST_NAME,
    UPDATE_COMMAND,
    ScenarioManifest,
    parse_manifest,
)
from ci_agent_eval.contract.waivers import (
    AcknowledgedEntry,
    AcknowledgedFile,
    QuarantineEntry,
    QuarantineFile,
    Waiver,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate import GatePolicy

if TYPE_CHECKING:
    from ci_agent_eval.contract.result_mapping import ImportPolicy

CONFIG_NAME = "agent-eval.toml"
ACKNOWLEDGED_NAME = "agent-eval-acknowledged.toml"
MAX_WAIVER_DAYS = 180
"""Longest time until a quarantine or an acknowledgement expires."""

PYPROJECT_TABLE = "tool.ci_agent_eval"

OTHER_VARIABLES = ("AGENT_EVAL_PYTHON", "AGENT_EVAL_DEBUG", "AGENT_EVAL_JUNIT_CORPUS")
"""Variables of this program that are not options: interpreter, tracebacks, our own tests."""


def split_words(value: Any) -> Any:
    """Split a text at whitespace and commas; return other values unchanged."""
    return tuple(re.split(r"[\s,]+", value.strip(" ,"))) if isinstance(value, str) else value


class GateSettings(KnownKeysModel):
    """`[gate]`: requirements of a passing run."""

    min_pass_rate: Rate = 1.0
    suite_min_pass_rate: Rate | None = None
    max_error_rate: Rate = 0.0
    allow_skipped: bool = False
    passed_on_retry: PassedOnRetry = "flaky"
    eval_min_pass_rate: Rate | None = None
    eval_min_score: Rate | None = None
    score_thresholds: dict[str, Any] = Field(default_factory=dict)
    """A `ScoreThreshold` for each name."""

    @field_validator("score_thresholds", mode="before")
    @classmethod
    def _parse_thresholds(cls, value: Any) -> Any:
        # Few reports have scores, and each has its start-up time.
        from ci_agent_eval.contract.result_mapping import parse_score_thresholds  # noqa: PLC0415 - see above

        return parse_score_thresholds(value)


ReportFormat = Annotated[str, AfterValidator(check_format)]

Condition = Literal["model", "tools", "prices", "judge"]


class CompareSettings(KnownKeysModel):
    """`[compare]`: the baseline, the significance of drops, and their effect."""

    baseline: str | None = Field(default=None, min_length=1)
    runs: int = Field(default=10, ge=1, le=1000)
    artifact: str = Field(default=DEFAULT_ARTIFACT, min_length=1)
    level: float = Field(default=0.05, gt=0, lt=0.5)
    min_drop: Rate = 0.2
    across: tuple[Condition, ...] = ("model", "tools", "prices")
    gate: Literal["fail", "warn"] = "fail"
    confirm: bool = False
    confirm_base: str | None = Field(default=None, min_length=1)
    max_cost_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_latency_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_typical_latency_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_scenario_cost_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_scenario_latency_increase: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("across", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return split_words(value)

    @property
    def policy(self) -> ComparePolicy:
        """The rules for calling a drop a regression."""
        return ComparePolicy(
            self.level, self.min_drop, across=frozenset(self.across), confirm=self.confirm
        )

    @property
    def increases(self) -> AllowedIncreases:
        """The limits of cost and latency."""
        return AllowedIncreases(
            cost=self.max_cost_increase,
            latency=self.max_latency_increase,
            typical_latency=self.max_typical_latency_increase,
            scenario_cost=self.max_scenario_cost_increase,
            scenario_latency=self.max_scenario_latency_increase,
        )


MAX_PAGE_ADDRESS = 2_000
_PAGE_ADDRESS = re.compile(r"https://[A-Za-z0-9.:\[\]-]+(?:[/?][!-\"$-~]*)?")
_REPORT_URL = ("publish", "report_url")


def _check_page_address(value: str) -> str:
    if len(value) > MAX_PAGE_ADDRESS or not _PAGE_ADDRESS.fullmatch(value):
        raise ValueError(
            "must be an https address without user name, password, # and blanks, at most 2,000 "
            "characters"
        )
    return value


PageAddress = Annotated[str, AfterValidator(_check_page_address)]
"""The https address of a page, which is published."""


class PublishSettings(KnownKeysModel):
    """`[publish]`: comment, check run and annotations on GitHub."""

    comment: Literal["update", "on-failure", "on-change", "off"] = "update"
    comment_author: str | None = None
    check_run: bool = True
    max_annotations: int = Field(default=200, ge=0, le=5000)
    check_name: str = Field(default="agent-eval", min_length=1)
    report_url: PageAddress | None = None


class Settings(KnownKeysModel):
    """All settings from all sources."""

    suite: str = Field(default="default", pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,127}$")
    """Matrices over models name suites after the model, such as `anthropic/claude-x`."""
    title: ReportTitle | None = None
    """Letters, digits, blanks and `.,()/&+-`, at most 40 characters."""
    report_dir: str = Field(default="agent-eval-report", min_length=1)
    formats: tuple[ReportFormat, ...] = Field(default=(), description="additional report formats")
    paths: tuple[str, ...] = Field(default=(), description="pytest paths of `run`")
    pytest_args: tuple[str, ...] = ()
    results: tuple[str, ...] = Field(default=(), description="episode files of `report`")
    junit: tuple[str, ...] = Field(default=(), description="JUnit XML files of `report`")
    affected: bool = Field(default=False, description="run only what a change can have affected")
    ignore: tuple[str, ...] = ("docs/*", "README*")
    """Patterns of files that no scenario depends on."""
    gate: GateSettings = Field(default_factory=GateSettings)
    budgets: SuiteBudgets = Field(default_factory=SuiteBudgets)
    compare: CompareSettings = Field(default_factory=CompareSettings)
    publish: PublishSettings = Field(default_factory=PublishSettings)
    mapping: str | None = Field(default=None, min_length=1)
    quarantine: tuple[QuarantineEntry, ...] = ()
    quarantine_file: str | None = Field(default=None, min_length=1)
    acknowledged: str = Field(default=ACKNOWLEDGED_NAME, min_length=1)
    scenario_manifest: str = Field(default=MANIFEST_NAME, min_length=1)

    @field_validator("formats", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return split_words(value)

    @property
    def policy(self) -> GatePolicy:
        """The gate's policy."""
        return GatePolicy(
            min_pass_rate=self.gate.min_pass_rate,
            suite_min_pass_rate=self.gate.suite_min_pass_rate,
            max_error_rate=self.gate.max_error_rate,
            allow_skipped=self.gate.allow_skipped,
            eval_min_pass_rate=self.gate.eval_min_pass_rate,
            eval_min_score=self.gate.eval_min_score,
            regressions=self.compare.gate,
            increases=self.compare.increases,
        )

    def for_shard(self) -> Settings:
        """Return the settings of a shard, without requirements of the whole suite."""
        # The suite's accepted error rate does not apply to the errors of one shard.
        errors = 1.0 if self.gate.max_error_rate else 0.0
        unset = {"eval_min_pass_rate": None, "eval_min_score": None, "max_error_rate": errors}
        if self.gate.suite_min_pass_rate is not None:
            unset["suite_min_pass_rate"] = 0.0
        gate = self.gate.model_copy(update=unset)
        return self.model_copy(update={"gate": gate, "budgets": SuiteBudgets()})

    @property
    def check_name(self) -> str:
        """The check run's name; a named suite has a separate check run."""
        name = self.publish.check_name
        return name if self.suite == "default" else f"{name} ({self.suite})"


def load_settings(
    *,
    root: Path,
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    config: Path | None = None,
) -> Settings:
    """Merge the settings: `flags` (by option name) over `environ` over the file.

    The file is `config`, else `agent-eval.toml` in `root`, else the table
    `[tool.ci_agent_eval]` of `pyproject.toml` there. Raises InputError with the place.
    """
    _refuse_unknown_variables(environ)
    path, text, table = _load_file(root, config)
    origins: dict[tuple[str, ...], str] = {}
    values: dict[str, Any] = dict(table)
    for option in OPTIONS:
        for origin, value in (
            (f"environment variable {option.variable}", environ.get(option.variable) or None),
            (f"option --{option.name}", flags.get(option.name)),
        ):
            if value is not None:
                _set_nested(values, option.key, _convert_number(option, value, origin))
                origins[option.key] = origin
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InputError(_describe_first_error(error, path, text, origins)) from None


def has_settings_file(root: Path, config: Path | None = None) -> bool:
    """Say whether `load_settings` finds a file with settings. Raises InputError as it does."""
    path, _, table = _load_file(root, config)
    return bool(table) or path not in {"", "pyproject.toml"}


def load_waivers(
    root: Path, settings: Settings, today: dt.date, config: Path | None = None
) -> ReportWaivers:
    """Return the waivers of the settings and of separate files, evaluated for `today` in UTC.

    `root` and `config` must be those of `load_settings`. Raises InputError with the place, also
    for a waiver that expires too late.
    """
    path, text, _ = _load_file(root, config)
    _refuse_long_terms("quarantine", settings.quarantine, today, path, text)
    quarantined = (*settings.quarantine, *load_quarantine(root, settings.quarantine_file, today))
    accepted = load_acknowledged(root, settings.acknowledged, today)
    return ReportWaivers(evaluate_waivers(quarantined, today), evaluate_waivers(accepted, today))


def load_quarantine(root: Path, name: str | None, today: dt.date) -> tuple[QuarantineEntry, ...]:
    """Read the quarantine file `name`, relative to `root`; empty if it is None.

    Raises InputError with the place.
    """
    if name is None:
        return ()
    text = _read_file(root / name, name=name, advice="check the setting quarantine_file")
    try:
        entries = QuarantineFile.model_validate(_parse_toml(name, text)).quarantine
    except ValidationError as error:
        raise InputError(_describe_first_error(error, name, text, {})) from None
    _refuse_long_terms("quarantine", entries, today, name, text)
    return entries


def load_acknowledged(root: Path, name: str, today: dt.date) -> tuple[AcknowledgedEntry, ...]:
    """Read the file of acknowledged regressions `name`, relative to `root`.

    Only the default file may be missing. Raises InputError with the place.
    """
    if name == ACKNOWLEDGED_NAME and not (root / name).exists():
        return ()
    text = _read_file(root / name, name=name, advice="check the setting acknowledged")
    return parse_acknowledged(text, name, today)


def parse_acknowledged(text: str, name: str, today: dt.date) -> tuple[AcknowledgedEntry, ...]:
    """Parse the text of the file of acknowledged regressions.

    Raises InputError with the place.
    """
    try:
        accepted = AcknowledgedFile.model_validate(_parse_toml(name, text)).acknowledged
    except ValidationError as error:
        raise InputError(_describe_first_error(error, name, text, {})) from None
    _refuse_long_terms("acknowledged", accepted, today, name, text)
    return accepted


def load_import_policy(root: Path, settings: Settings) -> ImportPolicy | None:
    """Return how results of other tools are read and judged; None: nothing is set.

    Raises InputError with the place in the file of mappings.
    """
    name, thresholds = settings.mapping, settings.gate.score_thresholds
    if name is None and not thresholds:
        return None
    from ci_agent_eval.contract.result_mapping import ImportPolicy, MappingFile  # noqa: PLC0415 - rarely needed

    if name is None:
        return ImportPolicy(thresholds)
    text = _read_file(root / name, name=name, advice="check the setting mapping")
    try:
        mappings = MappingFile.model_validate(_parse_toml(name, text)).mapping
    except ValidationError as error:
        raise InputError(_describe_first_error(error, name, text, {})) from None
    return ImportPolicy(thresholds, mappings)


def load_manifest(root: Path, settings: Settings) -> ScenarioManifest | None:
    """Read the scenario manifest; None if none is configured and the default file is missing.

    Raises InputError with the place.
    """
    name = settings.scenario_manifest
    if name == MANIFEST_NAME and not (root / name).exists():
        return None
    advice = f"check the setting scenario_manifest, or write the file with `{UPDATE_COMMAND}`"
    return parse_manifest(_read_file(root / name, name=name, advice=advice), name)


def load_manifest_or_empty(root: Path, settings: Settings) -> ScenarioManifest:
    """Read the scenario manifest; empty if it is missing. Raises as `load_manifest`."""
    if not (root / settings.scenario_manifest).exists():
        return ScenarioManifest(settings.scenario_manifest)
    return load_manifest(root, settings) or ScenarioManifest(settings.scenario_manifest)


def _refuse_long_terms(
    key: str, entries: Sequence[Waiver], today: dt.date, path: str, text: str
) -> None:
    """Raise InputError for a waiver that expires too late."""
    for number, entry in enumerate(entries):
        if (entry.until - today).days > MAX_WAIVER_DAYS:
            location = (key, str(number), "until")
            line = find_line(text, location)
            where = f"{path}:{line}" if line else path
            latest = today + dt.timedelta(MAX_WAIVER_DAYS)
            raise InputError(
                f"{where}: {'.'.join(location)}: {entry.until} is more than {MAX_WAIVER_DAYS} "
                f"days away; give {latest} at the latest, and renew it then"
            )


def _load_file(root: Path, config: Path | None) -> tuple[str, str, dict[str, Any]]:
    """Return the file's name, its text, and our table in it; all empty without a file."""
    if config is not None:
        text = _read_file(config)
        table = _parse_toml(config.name, text)
        is_pyproject = config.name == "pyproject.toml"
        return str(config), text, _own_table(table) if is_pyproject else table
    if (root / CONFIG_NAME).is_file():
        text = _read_file(root / CONFIG_NAME)
        return CONFIG_NAME, text, _parse_toml(CONFIG_NAME, text)
    if (root / "pyproject.toml").is_file():
        text = _read_file(root / "pyproject.toml")
        return "pyproject.toml", text, _own_table(_parse_toml("pyproject.toml", text))
    return "", "", {}


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = (*(option.variable for option in OPTIONS), *OTHER_VARIABLES)
    for name in environ:
        if name.startswith("AGENT_EVAL_") and name not in known:
            raise InputError(f"environment: {describe_unknown_key(name, known)}")


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


def _read_file(path: Path, *, name: str | None = None, advice: str = "check --config") -> str:
    label = name or path
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{label}: cannot be read ({error.strerror}); {advice}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{label}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _parse_toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: is not valid TOML: {error}") from None


def _convert_number(option: Option, value: object, origin: str) -> object:
    """Convert the text of a numeric option; other values are validated like the file's."""
    if option.kind not in _NUMBERS or not isinstance(value, str):
        return value
    read, called = _NUMBERS[option.kind]
    try:
        return read(value)
    except ValueError:
        raise InputError(f"{origin}: must be a {called} (given: {value!r})") from None


_NUMBERS: dict[OptionKind, tuple[Callable[[str], float], str]] = {
    "number": (float, "number"),
    "count": (int, "whole number"),
}


def _set_nested(values: dict[str, Any], key: tuple[str, ...], value: object) -> None:
    """Set a nested key; copies the tables on its path."""
    *tables, last = key
    for name in tables:
        inner = values.get(name)
        values[name] = dict(inner) if isinstance(inner, Mapping) else {}
        values = values[name]
    values[last] = value


def _describe_first_error(
    error: ValidationError, path: str, text: str, origins: Mapping[tuple[str, ...], str]
) -> str:
    """Describe the first error: its place, the problem, and the given value."""
    first = error.errors(include_url=False)[0]
    location = tuple(str(part) for part in first["loc"])
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):  # of a table with another validator
        first = inner.errors(include_url=False)[0]
        location += tuple(str(part) for part in first["loc"])
    message = get_plain_message(first)
    key = ".".join(location)
    for option_key, origin in origins.items():
        if location[: len(option_key)] == option_key:
            # An address may hold a password.
            given = "" if location == _REPORT_URL else f" (given: {first['input']!r})"
            return f"{origin}: {message}{given}"
    line = find_line(text, location, find_unknown_key(first))
    where = f"{path}:{line}" if line else path
    return f"{where}: {f'{key}: ' if key else ''}{message}"
