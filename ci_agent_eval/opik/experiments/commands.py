"""What `agent-eval experiments …` does, as text to print; errors are InputError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_agent_eval.errors import InputError, PublishError
from ci_agent_eval.opik.experiments.compare import chosen, compared
from ci_agent_eval.opik.experiments.experiment_text import (
    comparison_json,
    experiment_json,
    render_comparison,
    render_experiment,
    render_json,
    render_list,
    result_json,
)
from ci_agent_eval.opik.experiments.opik_settings import is_installed, load_opik_file, target_of
from ci_agent_eval.opik.experiments.push import SINK, push
from ci_agent_eval.opik.experiments.store import ExperimentStore


def listed(path: Path, *, as_json: bool) -> str:
    """Return all experiments, the latest first."""
    with ExperimentStore.open(path) as store:
        found = store.experiments()
    return render_json([experiment_json(e) for e in found]) if as_json else render_list(found)


def shown(path: Path, named: str, *, as_json: bool) -> str:
    """Return an experiment with its results."""
    with ExperimentStore.open(path) as store:
        experiment = chosen(store.experiments(), named)
        results = store.results(experiment.uid)
    if not as_json:
        return render_experiment(experiment, results)
    return render_json(
        {**experiment_json(experiment), "results": [result_json(result) for result in results]}
    )


def held_against(path: Path, base: str, other: str, *, as_json: bool) -> str:
    """Return what differs between two experiments."""
    with ExperimentStore.open(path) as store:
        experiments = store.experiments()
        first, second = chosen(experiments, base), chosen(experiments, other)
        comparison = compared(first, second, store.results(first.uid), store.results(second.uid))
    return render_json(comparison_json(comparison)) if as_json else render_comparison(comparison)


def pushed(path: Path, named: Sequence[str], *, environ: Mapping[str, str], home: Path) -> str:
    """Send what is meant for Opik and was not sent, or the experiments that are named.

    Raises PublishError where not all of it arrived; it stays in the store.
    """
    if not is_installed():
        raise InputError("the package opik is not installed here; install it beside this program")
    target = target_of(environ, load_opik_file(environ, home))
    if target is None:
        raise InputError("Opik is not configured; set OPIK_URL_OVERRIDE or OPIK_API_KEY")
    with ExperimentStore.open(path) as store:
        experiments = store.experiments()
        uids = [chosen(experiments, name).uid for name in named]
        for uid in uids:
            store.claim(uid, SINK)
        uids = uids or [experiment.uid for experiment in store.unsent(SINK)]
    done = push(path, uids, target, environ)
    if done.problem is not None:
        raise PublishError(f"{done.problem}; {len(done.sent)} of {len(uids)} sent; try again later")
    return f"sent to Opik at {target.host}: {len(done.sent)} of {len(uids)}\n"
