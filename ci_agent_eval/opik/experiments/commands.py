"""The commands `agent-eval experiments …`, as functions that return the text to print.

All raise InputError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_agent_eval.errors import InputError, PublishError
from ci_agent_eval.opik.experiments.compare import compare_results, find_experiment
from ci_agent_eval.opik.experiments.experiment_text import (
    encode_comparison,
    encode_experiment,
    encode_result,
    format_json,
    render_comparison,
    render_experiment,
    render_experiments,
)
from ci_agent_eval.opik.experiments.opik_settings import find_server, is_installed, load_opik_file
from ci_agent_eval.opik.experiments.push import SINK, push_to_opik
from ci_agent_eval.opik.experiments.store import ExperimentStore


def run_list_command(path: Path, *, as_json: bool) -> str:
    """Render all experiments, the latest first."""
    with ExperimentStore.open(path) as store:
        experiments = store.experiments()
    if as_json:
        return format_json([encode_experiment(experiment) for experiment in experiments])
    return render_experiments(experiments)


def run_show_command(path: Path, name: str, *, as_json: bool) -> str:
    """Render an experiment with its results."""
    with ExperimentStore.open(path) as store:
        experiment = find_experiment(store.experiments(), name)
        results = store.results(experiment.uid)
    if not as_json:
        return render_experiment(experiment, results)
    encoded = [encode_result(result) for result in results]
    return format_json({**encode_experiment(experiment), "results": encoded})


def run_compare_command(path: Path, base: str, other: str, *, as_json: bool) -> str:
    """Render the differences between two experiments."""
    with ExperimentStore.open(path) as store:
        experiments = store.experiments()
        first, second = find_experiment(experiments, base), find_experiment(experiments, other)
        before, after = store.results(first.uid), store.results(second.uid)
    comparison = compare_results(first, second, before, after)
    return format_json(encode_comparison(comparison)) if as_json else render_comparison(comparison)


def run_push_command(
    path: Path, names: Sequence[str], *, environ: Mapping[str, str], home: Path
) -> str:
    """Send experiments by name to Opik, by default all that are unsent.

    Raises PublishError if not all of them arrived; they stay in the store.
    """
    if not is_installed():
        raise InputError("the package opik is not installed here; install it beside this program")
    server = find_server(environ, load_opik_file(environ, home))
    if server is None:
        raise InputError("Opik is not configured; set OPIK_URL_OVERRIDE or OPIK_API_KEY")
    with ExperimentStore.open(path) as store:
        experiments = store.experiments()
        uids = [find_experiment(experiments, name).uid for name in names]
        for uid in uids:
            store.set_sink(uid, SINK)
        uids = uids or [experiment.uid for experiment in store.find_unsent(SINK)]
    result = push_to_opik(path, uids, server, environ)
    if result.problem is not None:
        sent = f"{len(result.sent)} of {len(uids)} sent"
        raise PublishError(f"{result.problem}; {sent}; try again later")
    return f"sent to Opik at {server.host}: {len(result.sent)} of {len(uids)}\n"
