"""The experiment store: data sets, their items, and how each experiment came out on them.

One SQLite file, which several processes may write at once; what is meant for a server is kept
here first, and marked until it was sent.
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
