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
    Settings,
    identity,
)
from ci_agent_eval.pytest_plugin.options import is_worker


def configure(config: pytest.Config) -> None:
    """Say what is wrong with a setting before anything runs; listen where there is an artifact."""
    settings = Settings.of(config)
    settings.truth(ENABLED), settings.truth(SERVER)
    if not is_worker(config):
        wanted = settings.artifact
    else:
        wanted = Path() if settings.truth(ARTIFACT) else None
    if wanted is not None:
        from ci_agent_eval.pytest_plugin.opik import artifact  # noqa: PLC0415 - inert until used

        artifact.listen(config, wanted)


def tell_worker(node: Any) -> None:
    """Tell an xdist worker which experiment it works at, and be there at the end for all."""
    from ci_agent_eval.pytest_plugin.opik import experiment_end  # noqa: PLC0415 - inert until used

    config: pytest.Config = node.config
    found = identity(config)
    store = str(Settings.of(config).store)
    node.workerinput[WORKER_EXPERIMENT] = {
        "uid": found.uid,
        "started": found.started,
        "store": store,
    }
    experiment_end.listen(config)


def watch_session(session: pytest.Session) -> None:
    """Keep an experiment of the selected tests, where one uses `@llm_unit` or it is asked for."""
    items = [item for item in session.items if _counts(item)]
    if not items or session.config.option.collectonly:
        return
    enabled = Settings.of(session.config).truth(ENABLED)
    if enabled is None:
        enabled = any(detection.is_linked(i) and not detection.returns_episode(i) for i in items)
    if enabled:
        from ci_agent_eval.pytest_plugin.opik import experiments  # noqa: PLC0415 - inert until used

        experiments.watch(session.config, items)


def _counts(item: pytest.Item) -> bool:
    return detection.is_linked(item) or detection.EPISODE in item.stash
