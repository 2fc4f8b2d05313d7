"""The one entry to baselines: a setting in, the runs of the base out."""

from __future__ import annotations

from collections.abc import Mapping

from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.files import load_from_files
from ci_agent_eval.results.baselines.git import PREFIX, load_from_git
from ci_agent_eval.results.baselines.request import BaselineRequest, BaselineSource, FoundBaseline

ARTIFACT = "artifact"
"""The setting that means: of the base branch's last runs, by GitHub's API."""


def load_baseline(wanted: BaselineRequest, sources: Mapping[str, BaselineSource]) -> FoundBaseline:
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
    return load_from_git(wanted) if wanted.name.startswith(PREFIX) else load_from_files(wanted)
