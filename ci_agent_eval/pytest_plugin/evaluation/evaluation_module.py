"""The module of an evaluation: collected like any other, and imported by our loader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import (
    EVALUATION,
    list_named_evaluations,
)
from ci_agent_eval.pytest_plugin.evaluation.loader import EvaluationFinder, EvaluationLoader
from ci_agent_eval.pytest_plugin.evaluation.shared_fixtures import SharedFixtures
from ci_agent_eval.pytest_plugin.evaluation.stable_explanations import StableExplanations

FINDER = pytest.StashKey[EvaluationFinder]()


def load_requested_evaluations(config: pytest.Config) -> None:
    """Load the requested evaluations as such, even before they are collected."""
    for path in list_named_evaluations(config):
        _get_finder(config).add_file(path)
    if config.option.eval:
        _get_finder(config).add_all_files()


def add_evaluation_file(path: Path, config: pytest.Config) -> None:
    """Load this file as an evaluation from now on."""
    _get_finder(config).add_file(path)


def _get_finder(config: pytest.Config) -> EvaluationFinder:
    """Return the finder of the process, installed on the first call."""
    if FINDER not in config.stash:
        finder = config.stash[FINDER] = EvaluationFinder(config)
        # Before pytest's own hook, which handles every file named on the command line.
        sys.meta_path.insert(0, finder)
        config.add_cleanup(lambda: sys.meta_path.remove(finder))
        config.pluginmanager.register(SharedFixtures(), "ci_agent_eval_shared_fixtures")
        config.pluginmanager.register(StableExplanations(), "ci_agent_eval_explanations")
    return config.stash[FINDER]


def mark_evaluation_module(module: pytest.Module | None) -> pytest.Module | None:
    """Mark a module as an evaluation, unless another plugin returned no module."""
    if module is None:
        return None
    module.stash[EVALUATION] = True
    module.config.stash[EVALUATION] = True
    return module


def refuse_unrecorded_module(
    report: pytest.CollectReport, collector: pytest.Collector
) -> pytest.CollectReport:
    """Return the report, or a failed one if the asserts of an evaluation are not recorded."""
    assert isinstance(collector, pytest.Module)  # noqa: S101 - only modules are marked
    if not report.result:
        # Reading `obj` might import the module: `--lf` skips files without importing them.
        return report
    loader = getattr(collector.obj, "__loader__", None)
    if isinstance(loader, EvaluationLoader):
        return report
    problem = (
        f"{collector.nodeid}: its asserts cannot be recorded, for {type(loader).__name__} had "
        "imported it before it was collected as an evaluation; move what other files import "
        "from it into a module of its own, or run it with --eval-strict"
    )
    return pytest.CollectReport(report.nodeid, "failed", problem, [])
