"""The activity files of a running suite: what each episode does at the moment.

Only the progress on a terminal reads them. They stand in a temporary folder, one for each process
that runs episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from ci_agent_eval.contract.base import Count, FrozenModel
from ci_agent_eval.contract.canonical import canonical_json


class EpisodeActivity(FrozenModel):
    """The current turn of an episode, and the tools that its agent called in it."""

    key: tuple[str, str, int, int]
    """`Episode.key`: scenario, node id, iteration, attempt."""
    turn: Count
    tools: tuple[str, ...] = ()


def append_activity(path: Path, activity: EpisodeActivity) -> None:
    """Append a line to a file in one unbuffered write. Raises OSError."""
    with FileIO(path, "a") as file:
        file.write(canonical_json(activity).encode("ascii") + b"\n")


def parse_activities(lines: Sequence[bytes]) -> list[EpisodeActivity]:
    """Parse the lines of a file; those that cannot be read are skipped."""
    found = []
    for line in lines:
        try:
            found.append(EpisodeActivity.model_validate_json(line))
        except ValueError:
            continue
    return found
