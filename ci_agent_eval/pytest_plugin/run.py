"""The steps of a session of pytest, from its configuration to its end; `__init__` has the hooks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.collection import detection, iterations
from ci_agent_eval.pytest_plugin.evaluation import (
    evaluation_files,
    library_assertions,
    rewritten_asserts,
)
from ci_agent_eval.pytest_plugin.fixtures import get_session
from ci_agent_eval.pytest_plugin.opik import experiment_options
from ci_agent_eval.pytest_plugin.parts import Parts, get_parts

NOTES = "agent_eval_notes"
"""Key under which an xdist worker sends its notes."""

RECORD = "agent_eval"
"""Attribute of a test report that carries the summary record of its episode."""

_TEST_HOOKS = "ci_agent_eval_tests"
"""Name of the plugin object with the hooks of tests."""


def watch_assertions(config: pytest.Config) -> None:
    """Report the asserts of modules that are imported from now on."""
    rewritten_asserts.install(config)
    library_assertions.install(config)
    pytest.register_assert_rewrite(*config.getini(options.ASSERT_MODULES))


def configure(config: pytest.Config) -> None:
    """Register the markers, refuse invalid settings before any test runs, and make the parts."""
    parts = get_parts(config)
    for text in (options.MARKER_HELP, options.SESSION_MARKER_HELP):
        config.addinivalue_line("markers", text)
    options.get_iterations(config)
    options.get_concurrency(config)
    if options.get_cassette_mode(config) != "off":
        options.get_cassette_rules(config)
    if options.get_cassette_mode(config) == "replay":
        from ci_agent_eval.pytest_plugin.episodes.agents import (  # noqa: PLC0415 - inert until used
            set_placeholder_keys,
        )

        set_placeholder_keys(config)
    experiment_options.configure_experiments(config)
    suite_budgets.prepare_budgets(config)
    if options.get_report_dir(config) is not None or config.option.episode_list:
        options.require_pydantic()
        from ci_agent_eval.pytest_plugin.collection.removed_episodes import (  # noqa: PLC0415 - inert until used
            RemovedEpisodes,
        )

        parts.removed = RemovedEpisodes(config)
    if config.option.episode_iterations is not None:
        parts.forced_iterations = IterationRange(config.option.episode_iterations)
    if config.option.episode_again:
        from ci_agent_eval.pytest_plugin.collection.selection import (  # noqa: PLC0415 - inert until used
            RepeatedScenarios,
        )

        parts.repeated = RepeatedScenarios.load(config)
    if parts.budgets is not None or evaluation_files.may_clear_reports(config):
        start_reports(config)


def start_reports(config: pytest.Config) -> None:
    """Make the reports of the main process; without episodes there are none."""
    parts = get_parts(config)
    if options.is_worker(config) or parts.reports is not None:
        return
    options.require_pydantic()
    from ci_agent_eval.pytest_plugin.evaluation.evaluation_reports import (  # noqa: PLC0415 - inert until used
        EvaluationReports,
    )
    from ci_agent_eval.pytest_plugin.terminal import EpisodeReports  # noqa: PLC0415 - as above

    parts.reports = EpisodeReports()
    parts.evaluations = EvaluationReports.start(config, parts.reports)
    if parts.run is not None:
        parts.reports.load_records = parts.run.load_summary_records


def parametrize_scenarios(metafunc: pytest.Metafunc) -> None:
    """Create an episode for each scenario of a test that `@scenarios` decorates."""
    if not hasattr(metafunc.function, detection.SCENARIOS):
        return
    from ci_agent_eval.pytest_plugin.episodes import marker  # noqa: PLC0415 - inert until used

    marker.parametrize_scenarios(metafunc)


def note_item(item: pytest.Item) -> None:
    """Note a collected test, and its session."""
    if options.SESSION_MARKER in item.keywords:
        from ci_agent_eval.pytest_plugin.collection import shared_conversations  # noqa: PLC0415 - inert until used

        shared_conversations.join_conversation(item)
    if (removed := get_parts(item.config).removed) is not None:
        removed.note_collected(item)


def list_notes(config: pytest.Config) -> list[str]:
    """Return the notes of the session's episodes as lines."""
    episodes = get_parts(config).episodes
    if episodes is None or not episodes.notes:
        return []
    from ci_agent_eval.contract.wording import make_printable  # noqa: PLC0415 - inert until used

    return [make_printable(f"note: {note}") for note in episodes.notes]


def start(session: pytest.Session) -> None:
    """Open the report directory, if one was requested, before any test runs."""
    config, parts = session.config, get_parts(session.config)
    if parts.budgets is not None:
        parts.budgets.begin(session)
    directory = options.get_report_dir(config)
    if directory is not None and not options.is_worker(config):
        from ci_agent_eval.pytest_plugin.run_report import RunReport  # noqa: PLC0415 - inert until used

        parts.run = RunReport.start(config, directory)
        if parts.reports is not None:
            parts.reports.load_records = parts.run.load_summary_records
    if config.option.episode_list:
        from ci_agent_eval.pytest_plugin.collection.removed_episodes import ScenarioListWriter  # noqa: PLC0415 - inert until used

        parts.listing = ScenarioListWriter(config)


def prepare_worker(node: Any) -> None:
    """Send an xdist worker the report directory, as its working directory may differ, and more."""
    directory = options.get_report_dir(node.config)
    node.workerinput[options.WORKER_DIR] = None if directory is None else str(directory)
    experiment_options.receive_worker_results(node)
    suite_budgets.prepare_worker(node)


def refuse_unreadable_markers(report: pytest.CollectReport) -> pytest.CollectReport:
    """Return the report, or a failed one if a marker of an item is invalid."""
    marked = [item for item in report.result if detection.is_marked(item)] if report.passed else []
    if not marked:
        return report
    from ci_agent_eval.pytest_plugin.episodes import marker  # noqa: PLC0415 - inert until used

    return marker.refuse_unreadable_markers(report, marked)


def note_collected(report: pytest.CollectReport, parts: Parts) -> None:
    """Keep files that could not be collected or were skipped."""
    for part in (parts.run, parts.listing):
        if part is not None:
            part.note_collected(report)


def select_items(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select scenarios, what must run and shards, and order the iterations, after other plugins."""
    parts = get_parts(config)
    if config.option.episode_scenario:
        from ci_agent_eval.pytest_plugin.collection import selection  # noqa: PLC0415 - inert until used

        wanted = config.option.episode_scenario
        _deselect(config, selection.select_scenarios(items, wanted))
    if config.option.episode_changes:
        from ci_agent_eval.pytest_plugin.collection import declared_files  # noqa: PLC0415 - inert until used

        _deselect(config, declared_files.leave_out_unaffected(config, items))
    if any(map(iterations.is_optional, items)):
        episodes = filter(detection.is_episode, items)
        parts.scenario_count = len(set(map(iterations.get_scenario_unit, episodes)))
        iterations.order_iterations(items)
    if config.option.shard:
        from ci_agent_eval.pytest_plugin.collection import selection  # noqa: PLC0415 - inert until used

        _deselect(config, selection.select_shard_items(config, items))
    if parts.repeated is not None:
        _deselect(config, parts.repeated.select(items))


def _deselect(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    if items:
        config.hook.pytest_deselected(items=items)


def count_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the episodes that -k, -m or --deselect exclude; --lf does not report its exclusions.

    Scenarios that another shard runs do not count, nor do those that a change has not affected.
    """
    if not items:
        return
    parts = get_parts(items[0].config)
    if parts.removed is not None:
        parts.removed.note_deselected(items)
    if parts.left_out is None and parts.shard is None:
        parts.deselected += sum(1 for item in items if detection.is_episode(item))


def select_episodes(session: pytest.Session) -> None:
    """Register the selected episodes before the terminal reports the collection."""
    config, parts = session.config, get_parts(session.config)
    if parts.listing is not None:
        parts.listing.select(session)
    items = [item for item in session.items if detection.is_episode(item)]
    if items or (options.get_report_dir(config) is not None and parts.run is None):
        _select(config, items)
    elif parts.run is not None:
        parts.run.note_without_episodes(parts)
    experiment_options.start_session_experiment(session)
    if parts.budgets is not None:
        parts.budgets.count_selected(session)


def _select(config: pytest.Config, items: list[pytest.Item]) -> None:
    parts = get_parts(config)
    removed = () if parts.removed is None else parts.removed.list_scenarios(items)
    left_out = () if parts.left_out is None else (parts.left_out,)
    get_session(config).select(items, parts.deselected, parts.shard, removed, *left_out)


def prepare_tests(session: pytest.Session) -> None:
    """Register episodes that a plugin added after the collection, and start concurrency.

    anyio, for example, replaces collected items.
    """
    config = session.config
    items = [item for item in session.items if detection.is_episode(item)]
    if any(detection.EPISODE not in item.stash for item in items):
        _select(config, items)
    is_ours = items or config.option.eval_strict or any(map(detection.is_linked, session.items))
    if not is_ours and not _has_async_fixture(session):
        return
    from ci_agent_eval.pytest_plugin.concurrency import loop_members  # noqa: PLC0415 - inert until used

    watch_tests(config)
    if any(map(loop_members.is_on_our_loop, session.items)):
        loop_members.prepare_coroutine_tests(session)
    if items and not config.option.collectonly:
        from ci_agent_eval.pytest_plugin.episodes.traffic import import_before  # noqa: PLC0415 - inert until used

        import_before(items)
    if items and (concurrency := options.get_concurrency(config)) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.scheduler import (  # noqa: PLC0415 - inert until used
            EpisodeScheduler,
        )

        EpisodeScheduler.start(session, concurrency, get_session(config))


def _has_async_fixture(session: pytest.Session) -> bool:
    """Return whether any test has an async fixture: a plain test may use it, too."""
    information = (getattr(item, "_fixtureinfo", None) for item in session.items)
    names = (found.name2fixturedefs for found in information if found is not None)
    definitions = {each for found in names for several in found.values() for each in several}
    return any(iscoroutinefunction(d.func) or isasyncgenfunction(d.func) for d in definitions)


def watch_tests(config: pytest.Config) -> None:
    """Register the hooks of tests, once."""
    from ci_agent_eval.pytest_plugin import TestHooks  # noqa: PLC0415 - it imports this module

    if not config.pluginmanager.hasplugin(_TEST_HOOKS):
        config.pluginmanager.register(TestHooks(), _TEST_HOOKS)


def note_report(report: pytest.TestReport, parts: Parts, config: pytest.Config) -> None:
    """Keep what a report carries; on the main process it may come from a worker."""
    if hasattr(report, RECORD) and parts.reports is None:
        start_reports(config)
    for part in (parts.episodes, parts.reports, parts.experiment, parts.artifact):
        if part is not None:
            part.note_report(report)


def take_worker_output(node: Any) -> None:
    """Take what an xdist worker sends at its end."""
    output: Mapping[str, Any] = getattr(node, "workeroutput", None) or {}
    parts = get_parts(node.config)
    if output.get(NOTES):
        start_reports(node.config)
    if parts.reports is not None:
        parts.reports.add_notes(output)
    if parts.run is not None:
        parts.run.add_adaptive_stops(output)
    if parts.budgets is not None:
        parts.budgets.add_worker(output)


def interrupt(parts: Parts, error: BaseException) -> None:
    """End all episodes, and remember that the run was interrupted."""
    if parts.scheduler is not None:
        parts.scheduler.interrupt(error)
    if parts.run is not None:
        parts.run.note_interruption(error)


def finish(session: pytest.Session) -> Generator[None, None, None]:
    """Send what a worker has found; write all results once every worker has finished."""
    parts = get_parts(session.config)
    if options.is_worker(session.config):
        _send_output(session.config)
    elif parts.reports is not None:
        parts.reports.shorten_repeated(session)
    yield
    if parts.listing is not None:
        parts.listing.write(session)
    if parts.experiment is not None:
        parts.experiment.send(session)
    if parts.artifact is not None and not options.is_worker(session.config):
        parts.artifact.write()
    if parts.evaluations is not None:
        parts.evaluations.write(session)
    if parts.run is not None:
        parts.run.write(session)


def _send_output(config: pytest.Config) -> None:
    """Send the notes and counts of an xdist worker to the main process."""
    parts, output = get_parts(config), config.workeroutput  # type: ignore[attr-defined]
    if parts.episodes is not None:
        output[NOTES] = list(parts.episodes.notes)
        output[options.ADAPTIVE_STOPS] = parts.episodes.dump_adaptive_stops()
    if parts.budgets is not None:
        parts.budgets.dump(output)


def write_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write what the session has found to the terminal."""
    parts = get_parts(terminalreporter.config)
    for part in (
        parts.experiment,
        parts.reports,
        parts.evaluations,
        parts.artifact,
        parts.budgets,
    ):
        if part is not None:
            part.write_summary(terminalreporter)


def hide_shown_failures(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Keep out of pytest's lists what a block says whole, in a run by `agent-eval run`."""
    if terminalreporter.config.option.episode_asked is None:
        return (yield)
    from ci_agent_eval.pytest_plugin import terminal  # noqa: PLC0415 - inert until used

    return (yield from terminal.hide_shown_failures(terminalreporter))
