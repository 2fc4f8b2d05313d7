"""Hooks of experiments, called at every start of pytest; inert without an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.opik.experiment_options import (
    ARTIFACT,
    ENABLED,
    SERVER,
    ExperimentSettings,
)
from ci_agent_eval.pytest_plugin.options import is_worker


def configure_experiments(config: pytest.Config) -> None:
    """Validate the settings before any test runs, and register the artifact if requested."""
    settings = ExperimentSettings.from_config(config)
    settings.get_flag(ENABLED), settings.get_flag(SERVER)
    if not is_worker(config):
        path = settings.artifact
    else:
        path = Path() if settings.get_flag(ARTIFACT) else None
    if path is not None:
        from ci_agent_eval.pytest_plugin.opik import episode_artifact  # noqa: PLC0415 - inert until used

        episode_artifact.register_artifact(config, path)


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
