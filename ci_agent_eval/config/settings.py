"""Reading of settings: flags over environment over configuration file, validated together."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ci_agent_eval.analysis.waivers import ReportWaivers, evaluate_waivers
from ci_agent_eval.config.options import (
    ACKNOWLEDGED_NAME,
    OPTIONS,
    Option,
    OptionKind,
    Settings,
)
from ci_agent_eval.config.toml_lines import find_line
from ci_agent_eval.contract.base import (
    describe_unknown_key,
    find_unknown_key,
    get_plain_message,
)
from ci_agent_eval.contract.scenario_manifest import (
    MANIFEST_NAME,
    UPDATE_COMMAND,
    AcknowledgedEntry,
    AcknowledgedFile,
    QuarantineEntry,
    QuarantineFile,
    ScenarioManifest,
    Waiver,
    parse_manifest,
)
from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    from ci_agent_eval.contract.result_mapping import ImportPolicy

CONFIG_NAME = "agent-eval.toml"
MAX_WAIVER_DAYS = 180
"""Longest time until a quarantine or an acknowledgement expires."""

PYPROJECT_TABLE = "tool.ci_agent_eval"

OTHER_VARIABLES = ("AGENT_EVAL_PYTHON", "AGENT_EVAL_DEBUG", "AGENT_EVAL_JUNIT_CORPUS")
"""Variables of this program that are not options: interpreter, tracebacks, our own tests."""


_REPORT_URL = ("publish", "report_url")


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
