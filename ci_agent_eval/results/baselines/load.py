"""Load the baseline that a setting names."""

from __future__ import annotations

from collections.abc import Mapping

from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.files import load_from_files
from ci_agent_eval.results.baselines.git import PREFIX, load_from_git
from ci_agent_eval.results.baselines.request import BaselineRequest, BaselineSource, FoundBaseline

ARTIFACT = "artifact"
"""The setting for artifacts of the base branch's last runs, read by GitHub's API."""


def load_baseline(request: BaselineRequest, sources: Mapping[str, BaselineSource]) -> FoundBaseline:
    """Load the baseline that a setting names.

    `sources` maps settings to sources that need more than files; the action provides `artifact`.
    Raises InputError for an invalid setting.
    """
    if request.name in sources:
        return sources[request.name](request)
    if request.name == ARTIFACT:
        raise InputError(
            "baseline artifact: the artifacts of a repository's workflow runs are known to the "
            "action alone; name a file, a folder or git:REF:PATH here"
        )
    return load_from_git(request) if request.name.startswith(PREFIX) else load_from_files(request)
