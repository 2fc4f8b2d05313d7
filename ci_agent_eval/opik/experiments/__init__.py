"""The experiment store: data sets, their items, and the results of each experiment.

One SQLite file, which several processes may write concurrently. Experiments for a server are
stored here first, and marked as unsent until the server has them.
"""

from ci_agent_eval.opik.experiments.records import (
    Experiment,
    ExperimentResult,
    ItemContent,
    ScoreRow,
    build_content,
    make_uuid7,
)
from ci_agent_eval.opik.experiments.store import DEFAULT_PATH, ExperimentStore

__all__ = [
    "DEFAULT_PATH",
    "Experiment",
    "ExperimentResult",
    "ExperimentStore",
    "ItemContent",
    "ScoreRow",
    "build_content",
    "make_uuid7",
]
