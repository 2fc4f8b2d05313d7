"""Loader of the settings: flags override the environment, which overrides a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.steering.locations import CONFIG_NAME
from ci_agent_eval.steering.policy.settings import SteeringSettings

ENABLED_VARIABLE = "PYTEST_FULL_SUITE_STEERING_ENABLED"
MESSAGE_VARIABLE = "PYTEST_FULL_SUITE_STEERING_MESSAGE"


def load_steering_settings(
    *,
    root: Path,
    environ: Mapping[str, str],
    enabled: bool | None = None,
    config: Path | None = None,
) -> SteeringSettings:
    """Merge the settings: the flag `enabled` overrides `environ`, which overrides the file.

    The file is `config`, or by default the optional `agent-eval-steering.yaml` in `root`. Raises
    InputError with the file and line.
    """
    settings = _load_file(root, config)
    settings = _apply_environment(settings, environ)
    return settings if enabled is None else replace(settings, enabled=enabled)


def _load_file(root: Path, config: Path | None) -> SteeringSettings:
    path = root / CONFIG_NAME if config is None else config
    name = CONFIG_NAME if config is None else str(config)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if config is None:
            return SteeringSettings()
        raise InputError(f"{name}: there is no such file; check --config") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); check --config") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    return parse_steering_settings(text, name)


def parse_steering_settings(text: str, name: str) -> SteeringSettings:
    """Parse settings in YAML; `name` is the file's name in errors. Raises InputError."""
    # Both are slow to import, and a hook without a file does not need them.
    from ci_agent_eval.steering.settings_keys import parse_settings  # noqa: PLC0415 - as said

    try:
        from ci_agent_eval.contract.located_yaml import parse_located_yaml  # noqa: PLC0415 - as said
    except ModuleNotFoundError as error:  # pragma: no cover - the tests' environment has it
        user = "a configuration file of steering"
        raise missing_package_error(user, "PyYAML", "steering") from error

    try:
        return parse_settings(parse_located_yaml(text) or LocatedValue({}, 1))
    except LocatedProblem as error:
        raise InputError(f"{name}:{error.line}: {error}") from None


def _apply_environment(settings: SteeringSettings, environ: Mapping[str, str]) -> SteeringSettings:
    enabled, message = environ.get(ENABLED_VARIABLE, ""), environ.get(MESSAGE_VARIABLE, "")
    if enabled.strip():
        settings = replace(settings, enabled=_parse_enabled(enabled))
    return replace(settings, message=message.strip()) if message.strip() else settings


_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


def _parse_enabled(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise InputError(
            f"environment variable {ENABLED_VARIABLE}: must be true or false (given: {text!r})"
        )
    return word in _TRUE
