"""Merge the dependencies of a run's shards. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from ci_agent_eval.dependencies.model import Reached, RunDependencies

_DIFFERS = "differs"
"""The hash of a variable with several values, which equals none: it counts as changed."""

_get_conditions = attrgetter("commit", "folder", "recorder", "python", "platform", "distributions")


def merge_runs(runs: Sequence[RunDependencies]) -> RunDependencies:
    """Return the dependencies of all scenarios; what one shard shares, all scenarios share.

    Raises ValueError if there is no run, or if they differ in commit, environment or files.
    """
    if not runs or any(_get_conditions(one) != _get_conditions(runs[0]) for one in runs):
        raise ValueError("the runs are of different commits or environments")
    hashes = {path: digest for one in runs for path, digest in one.hashes.items()}
    if any(hashes[path] != digest for one in runs for path, digest in one.hashes.items()):
        raise ValueError("the runs read different files")
    shared, scenarios = Reached(), dict[str, Reached]()
    for one in runs:
        shared |= one.shared
        for name, own in one.scenarios.items():
            scenarios[name] = scenarios.get(name, Reached()) | own
    first = runs[0]
    return RunDependencies(
        recorded_at=min(one.recorded_at for one in runs),
        python=first.python,
        platform=first.platform,
        commit=first.commit,
        is_clean=all(one.is_clean for one in runs),
        folder=first.folder,
        complete=all(one.complete for one in runs),
        recorder=first.recorder,
        unit="function" if all(one.unit == "function" for one in runs) else "module",
        distributions=first.distributions,
        hashes=hashes,
        imports=_merge_imports(one.imports for one in runs),
        variables=_merge_variables(one.variables for one in runs),
        tools={name: digest for one in runs for name, digest in one.tools.items()},
        shared=shared,
        scenarios=scenarios,
        requests={name: digest for one in runs for name, digest in one.requests.items()},
    )


def _merge_imports(
    graphs: Iterable[Mapping[str, frozenset[str]]],
) -> dict[str, frozenset[str]]:
    merged: dict[str, frozenset[str]] = {}
    for graph in graphs:
        for path, imported in graph.items():
            merged[path] = merged.get(path, frozenset()) | imported
    return merged


def _merge_variables(found: Iterable[Mapping[str, str | None]]) -> dict[str, str | None]:
    merged: dict[str, str | None] = {}
    for variables in found:
        for name, digest in variables.items():
            if merged.setdefault(name, digest) != digest:
                merged[name] = _DIFFERS
    return merged
