"""The one entry to baselines: a setting in, the runs of the base out."""

from __future__ import annotations

from collections.abc import Mapping

from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.files import from_files
from ci_agent_eval.results.baselines.found import Found, Source, Wanted
from ci_agent_eval.results.baselines.git import PREFIX, from_git

ARTIFACT = "artifact"
"""The setting that means: of the base branch's last runs, by GitHub's API."""


def load_baseline(wanted: Wanted, sources: Mapping[str, Source]) -> Found:
    """Find the baseline that a setting names.

    `sources` are those that need more than files, by the setting that asks for them: the
    action brings `artifact`. Raises InputError for a setting that cannot mean anything.
    """
    if wanted.name in sources:
        return sources[wanted.name](wanted)
    if wanted.name == ARTIFACT:
        raise InputError(
            "baseline artifact: the artifacts of a repository's workflow runs are known to the "
            "action alone; name a file, a folder or git:REF:PATH here"
        )
    return from_git(wanted) if wanted.name.startswith(PREFIX) else from_files(wanted)
