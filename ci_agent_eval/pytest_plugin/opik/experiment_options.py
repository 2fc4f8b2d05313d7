"""Options of experiments, and what starts one; read at every start, so it imports little.

Names that Opik already uses are kept. Precedence: option, environment variable, pytest's ini file,
Opik's own file, default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest

from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.options import is_worker
from ci_agent_eval.pytest_plugin.parts import get_parts

OPIK_SECTION = "pytest_"
"""Prefix of these settings in Opik's own file, and after `OPIK_` in the environment."""


class ExperimentSetting(NamedTuple):
    """One setting: its option and ini key, Opik's name for it, and its default."""

    option: str
    opik: str | None
    default: str
    help: str
    is_flag: bool = False

    @property
    def ini(self) -> str:
        """The key in pytest's ini file."""
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str | None:
        """The environment variable, if there is one."""
        return None if self.opik is None else f"OPIK_PYTEST_{self.opik.upper()}"


ENABLED = ExperimentSetting(
    "--experiment",
    "experiment_enabled",
    "",
    "make an experiment of the tests: true, false (default: where a test uses @llm_unit)",
)
DATASET = ExperimentSetting(
    "--experiment-dataset", "experiment_dataset_name", "tests", "name of its data set"
)
PREFIX = ExperimentSetting(
    "--experiment-prefix",
    "experiment_name_prefix",
    "Test-Suite",
    "beginning of its name; its time follows",
)
SCORE = ExperimentSetting(
    "--experiment-score", "passed_score_name", "Passed", "name of the score of a test that passed"
)
SERVER = ExperimentSetting(
    "--experiment-server",
    None,
    "true",
    "send the experiment to Opik where it is installed and configured: true, false",
)
ARTIFACT = ExperimentSetting(
    "--episode-artifact",
    "episode_artifact_enabled",
    "false",
    "write the episodes as one JSON file, too",
    is_flag=True,
)
ARTIFACT_PATH = ExperimentSetting(
    "--episode-artifact-path",
    "episode_artifact_path",
    ".opik/pytest_episode_report.json",
    "that file, relative to where pytest is started",
)
SETTINGS = (ENABLED, DATASET, PREFIX, SCORE, SERVER, ARTIFACT, ARTIFACT_PATH)

_TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "t": True, "y": True}
_TRUTHS |= {"0": False, "false": False, "no": False, "off": False, "f": False, "n": False}


def add_experiment_options(parser: pytest.Parser) -> None:
    """Add an option and an ini setting for each setting."""
    group = parser.getgroup("experiments", "experiments of agent tests (ci-agent-eval)")
    for setting in SETTINGS:
        help_text = (
            f"{setting.help} (default: {setting.default})" if setting.default else setting.help
        )
        if setting.is_flag:
            group.addoption(setting.option, action="store_const", const="true", help=help_text)
        else:
            group.addoption(setting.option, metavar="VALUE", help=help_text)
        parser.addini(setting.ini, f"as {setting.option}", default="")


class ExperimentSettings(NamedTuple):
    """The settings of a session, resolved when they are read."""

    config: pytest.Config
    environ: Mapping[str, str]
    opik_file: Mapping[str, str]
    """Opik's own file, if it has been read."""

    @classmethod
    def from_config(
        cls, config: pytest.Config, opik_file: Mapping[str, str] | None = None
    ) -> ExperimentSettings:
        """Create the settings of the session that `config` belongs to."""
        return cls(config, os.environ, opik_file or {})

    def get_text(self, setting: ExperimentSetting) -> str:
        """Return the setting's text; a blank value counts as unset."""
        return self._resolve(setting)[0]

    def get_flag(self, setting: ExperimentSetting) -> bool | None:
        """Return whether a setting is on, or None if it is unset.

        Raises pytest.UsageError for a value that is neither true nor false.
        """
        text, source = self._resolve(setting)
        if not text:
            return None
        if text.lower() not in _TRUTHS:
            raise pytest.UsageError(f"{source}: {text!r} is neither true nor false")
        return _TRUTHS[text.lower()]

    def _resolve(self, setting: ExperimentSetting) -> tuple[str, str]:
        option = getattr(self.config.option, setting.ini, None)
        ini = str(self.config.getini(setting.ini))
        sources = [(option, setting.option)]
        if setting.variable is not None:
            sources.append((self.environ.get(setting.variable), setting.variable))
        sources.append((ini, f"ini setting {setting.ini}"))
        if setting.opik is not None:
            key = OPIK_SECTION + setting.opik
            sources.append((self.opik_file.get(key), f"Opik's file: {key}"))
        for value, source in sources:
            if value is not None and value.strip():
                return value.strip(), source
        return setting.default, "default"

    @property
    def artifact(self) -> Path | None:
        """The path of the episode artifact if requested; raises pytest.UsageError."""
        if not self.get_flag(ARTIFACT):
            return None
        text, source = self._resolve(ARTIFACT_PATH)
        path, base = PurePosixPath(text), self.config.invocation_params.dir
        if path.is_absolute() or ".." in path.parts or "\\" in text:
            raise pytest.UsageError(f"{source}: {text!r} must be a relative path without `..`")
        if not (base / path).resolve().is_relative_to(base.resolve()):
            raise pytest.UsageError(f"{source}: {text!r} leads out of {base}; name another path")
        return base / path


def configure_experiments(config: pytest.Config) -> None:
    """Validate the settings before any test runs, and collect the artifact if requested."""
    settings = ExperimentSettings.from_config(config)
    settings.get_flag(ENABLED), settings.get_flag(SERVER)
    if not is_worker(config):
        path = settings.artifact
    else:
        path = Path() if settings.get_flag(ARTIFACT) else None
    if path is not None:
        from ci_agent_eval.pytest_plugin.opik.episode_artifact import EpisodeArtifact  # noqa: PLC0415 - inert until used

        artifact = get_parts(config).artifact = EpisodeArtifact(path)
        if not is_worker(config):
            artifact.claim()


def receive_worker_results(node: Any) -> None:
    """Collect the results that an xdist worker sends with its reports."""
    from ci_agent_eval.pytest_plugin.opik.experiment_report import ExperimentReport  # noqa: PLC0415 - inert until used

    ExperimentReport.start(node.config)


def start_session_experiment(session: pytest.Session) -> None:
    """Start an experiment of the selected tests if enabled, or if a test uses `@llm_unit`."""
    items = [item for item in session.items if _belongs_to_experiment(item)]
    if not items or session.config.option.collectonly:
        return
    enabled = ExperimentSettings.from_config(session.config).get_flag(ENABLED)
    if enabled is None:
        enabled = any(detection.is_linked(i) and not detection.returns_episode(i) for i in items)
    if enabled:
        from ci_agent_eval.pytest_plugin.opik.experiments import ExperimentTests  # noqa: PLC0415 - inert until used

        ExperimentTests.start(session.config, items)


def _belongs_to_experiment(item: pytest.Item) -> bool:
    return detection.is_linked(item) or detection.EPISODE in item.stash
