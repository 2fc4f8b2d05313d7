"""The hooks of experiments, called at every start of pytest: inert unless there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.opik.experiment_options import (
    ARTIFACT,
    ENABLED,
    SERVER,
    WORKER_EXPERIMENT,
    ExperimentSettings,
    get_experiment_identity,
)
from ci_agent_eval.pytest_plugin.options import is_worker


def configure_experiments(config: pytest.Config) -> None:
    """Say what is wrong with a setting before anything runs; listen where there is an artifact."""
    settings = ExperimentSettings.of(config)
    settings.truth(ENABLED), settings.truth(SERVER)
    if not is_worker(config):
        wanted = settings.artifact
    else:
        wanted = Path() if settings.truth(ARTIFACT) else None
    if wanted is not None:
        from ci_agent_eval.pytest_plugin.opik import episode_artifact  # noqa: PLC0415 - inert until used

        episode_artifact.register_artifact(config, wanted)


def send_experiment_to_worker(node: Any) -> None:
    """Tell an xdist worker which experiment it works at, and be there at the end for all."""
    from ci_agent_eval.pytest_plugin.opik import experiment_end  # noqa: PLC0415 - inert until used

    config: pytest.Config = node.config
    found = get_experiment_identity(config)
    store = str(ExperimentSettings.of(config).store)
    node.workerinput[WORKER_EXPERIMENT] = {
        "uid": found.uid,
        "started": found.started,
        "store": store,
    }
    experiment_end.register_experiment_end(config)


def start_session_experiment(session: pytest.Session) -> None:
    """Keep an experiment of the selected tests, where one uses `@llm_unit` or it is asked for."""
    items = [item for item in session.items if _belongs_to_experiment(item)]
    if not items or session.config.option.collectonly:
        return
    enabled = ExperimentSettings.of(session.config).truth(ENABLED)
    if enabled is None:
        enabled = any(detection.is_linked(i) and not detection.returns_episode(i) for i in items)
    if enabled:
        from ci_agent_eval.pytest_plugin.opik import experiments  # noqa: PLC0415 - inert until used

        experiments.start_experiment(session.config, items)


def _belongs_to_experiment(item: pytest.Item) -> bool:
    return detection.is_linked(item) or detection.EPISODE in item.stash
