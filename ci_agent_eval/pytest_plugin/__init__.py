"""The pytest plugin: hooks of a few lines that call a session object.

Every start of pytest imports this module where the package is installed. It stays inert until an
episode or a report directory: it imports neither pydantic nor the contract, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.collection import (
    detection,
    foreign_repeats,
    iterations,
    replaced_conversations,
    shared_conversations,
)
from ci_agent_eval.pytest_plugin.concurrency import INTERRUPTIONS, loop_members
from ci_agent_eval.pytest_plugin.episodes import simulations
from ci_agent_eval.pytest_plugin.episodes.conversations import _conversation_fixture  # noqa: F401 - a fixture
from ci_agent_eval.pytest_plugin.episodes.error_tracebacks import (
    hide_own_frames,
    hide_own_traceback,
)
from ci_agent_eval.pytest_plugin.episodes.simulations import _agent_eval_run, simulation  # noqa: F401 - fixtures
from ci_agent_eval.pytest_plugin.evaluation import (
    evaluation_files,
    library_assertions,
    rewritten_asserts,
)
from ci_agent_eval.pytest_plugin.evaluation.evaluation_reports import EvaluationReports
from ci_agent_eval.pytest_plugin.fixtures import (  # noqa: F401 - fixtures
    _recorder_fixture,
    aitest_run,
    episode,
    episode_alone,
    episode_clock,
    find_session,
    get_session,
    llm_assert,
    llm_score,
    model_environment,
)
from ci_agent_eval.pytest_plugin.opik import experiment_hooks, experiment_options
from ci_agent_eval.pytest_plugin.options import pytest_addhooks  # noqa: F401 - a hook
from ci_agent_eval.pytest_plugin.terminal import NOTES, PLUGIN_NAME, EpisodeReports

if TYPE_CHECKING:
    from ci_agent_eval.pytest_plugin.concurrency.scheduler import EpisodeScheduler

DESELECTED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    options.add_options(parser)
    suite_budgets.add_budget_options(parser)
    experiment_options.add_experiment_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> None:
    """Keep pytest's parser, which later shows the exclusions of the command line.

    Also count assertions, before a module of the project is imported.
    """
    early_config.stash[options.PARSER] = parser
    rewritten_asserts.install(early_config)
    library_assertions.install(early_config)
    pytest.register_assert_rewrite(*early_config.getini(options.ASSERT_MODULES))


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and on the main process the terminal summary."""
    for text in (options.MARKER_HELP, shared_conversations.MARKER_HELP):
        config.addinivalue_line("markers", text)
    # Invalid settings are reported before any test runs.
    options.get_iterations(config)
    options.get_concurrency(config)
    if options.get_cassette_mode(config) != "off":
        options.get_cassette_rules(config)
    if options.get_cassette_mode(config) == "replay":
        from ci_agent_eval.pytest_plugin.episodes.agents import (  # noqa: PLC0415 - inert until used
            set_placeholder_keys,
        )

        set_placeholder_keys(config)
    experiment_hooks.configure_experiments(config)
    suite_budgets.register_budget_stop(config)
    if options.get_report_dir(config) is not None or config.option.episode_list:
        options.require_pydantic()
        from ci_agent_eval.pytest_plugin.collection import removed_episodes  # noqa: PLC0415 - inert until used

        removed_episodes.watch_collection(config)
    if config.option.episode_iterations is not None:
        forced = IterationRange(config.option.episode_iterations)
        config.stash[options.FORCED_ITERATIONS] = forced
    if config.option.episode_again:
        from ci_agent_eval.pytest_plugin.collection.repeated_scenarios import (  # noqa: PLC0415 - inert until used
            RepeatedScenarios,
        )

        RepeatedScenarios.register(config)
    if not options.is_worker(config):
        reports = EpisodeReports()
        EvaluationReports.start(config, reports)
        config.pluginmanager.register(reports, PLUGIN_NAME)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Open the report directory, if one was requested, before any test runs."""
    directory = options.get_report_dir(session.config)
    if directory is not None and not options.is_worker(session.config):
        from ci_agent_eval.pytest_plugin.run_report import RunReport  # noqa: PLC0415 - inert until used

        RunReport.start(session.config, directory)
    if session.config.option.episode_list:
        from ci_agent_eval.pytest_plugin.collection.scenario_list import ScenarioListWriter  # noqa: PLC0415 - inert until used

        ScenarioListWriter.start(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send an xdist worker the report directory, as its working directory may differ, and more."""
    directory = options.get_report_dir(node.config)
    node.workerinput[options.WORKER_DIR] = None if directory is None else str(directory)
    experiment_hooks.receive_worker_results(node)
    suite_budgets.prepare_worker(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep adaptive iterations together, and queue more items on workers with concurrency."""
    from ci_agent_eval.pytest_plugin.concurrency.xdist_scheduling import (  # noqa: PLC0415 - needs xdist
        make_scheduler,
    )

    return make_scheduler(config, log, options.get_concurrency(config))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Repeat episodes, after every other parameter: the iteration ends the node id."""
    simulations.parametrize_scenarios(metafunc)
    yield
    forced = metafunc.config.stash.get(options.FORCED_ITERATIONS, None)
    iterations.repeat_episodes(metafunc, options.get_iterations(metafunc.config), forced)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the evaluations that pytest would leave out."""
    if not evaluation_files.is_left_out_by_pytest(file_path, parent.session):
        return None
    found: pytest.Collector = parent.session.gethookproxy(file_path).pytest_pycollect_makemodule(
        module_path=file_path, parent=parent
    )
    return found


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> Generator[None, pytest.Module | None, pytest.Module | None]:
    """Mark the module of an evaluation, whichever plugin creates it."""
    module = yield
    is_measured = evaluation_files.is_evaluation_file(module_path, parent.config)
    return evaluation_files.mark_evaluation_module(module) if is_measured else module


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report modules that cannot be measured, and invalid markers, as collection errors."""
    report = yield
    report = evaluation_files.refuse_unrecorded_module(report, collector)
    report = replaced_conversations.refuse_replaced_conversations(report, collector)
    marked = [item for item in report.result if detection.is_marked(item)] if report.passed else []
    if not marked:
        return report
    from ci_agent_eval.pytest_plugin.episodes import marker  # noqa: PLC0415 - inert until used

    return marker.refuse_unreadable_markers(report, marked)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note the order of the tests of a session, before any are deselected."""
    shared_conversations.join_conversation(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select scenarios, what must run and shards, and order the iterations, after other plugins."""
    if config.option.episode_scenario:
        from ci_agent_eval.pytest_plugin.collection import selected_scenarios  # noqa: PLC0415 - inert until used

        wanted = config.option.episode_scenario
        if others := selected_scenarios.select_scenarios(items, wanted):
            config.hook.pytest_deselected(items=others)
    if config.option.episode_changes:
        from ci_agent_eval.pytest_plugin.collection import declared_files  # noqa: PLC0415 - inert until used

        if left_out := declared_files.leave_out_unaffected(config, items):
            config.hook.pytest_deselected(items=left_out)
    if any(map(iterations.is_optional, items)):
        episodes = filter(detection.is_episode, items)
        config.stash[options.SCENARIO_COUNT] = len(set(map(iterations.get_scenario_unit, episodes)))
        iterations.order_iterations(items)
    if not config.option.shard:
        return
    from ci_agent_eval.pytest_plugin.collection import shards  # noqa: PLC0415 - inert until used

    if deselected := shards.select_shard_items(config, items):
        config.hook.pytest_deselected(items=deselected)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the episodes that -k, -m or --deselect exclude; --lf does not report its exclusions.

    Scenarios that another shard runs do not count, nor do those that a change has not affected.
    """
    if items and any(key in items[0].config.stash for key in (options.LEFT_OUT, options.SHARD)):
        return
    if count := sum(1 for item in items if detection.is_episode(item)):
        stash = items[0].config.stash
        stash[DESELECTED] = stash.get(DESELECTED, 0) + count


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Register the selected episodes before the terminal reports the collection."""
    items = [item for item in session.items if detection.is_episode(item)]
    if items or options.get_report_dir(session.config) is not None:
        _select_episodes(session.config, items)
    experiment_hooks.start_session_experiment(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Register episodes that a plugin added after the collection, and start concurrency.

    anyio, for example, replaces collected items.
    """
    items = [item for item in session.items if detection.is_episode(item)]
    if any(detection.EPISODE not in item.stash for item in items):
        _select_episodes(session.config, items)
    if any(map(loop_members.is_on_our_loop, session.items)):
        from ci_agent_eval.pytest_plugin.concurrency import coroutines  # noqa: PLC0415 - inert until used

        coroutines.register_coroutine_tests(session)
    if items and not session.config.option.collectonly:
        from ci_agent_eval.pytest_plugin.episodes.traffic import import_before  # noqa: PLC0415 - inert until used

        import_before(items)
    if items and (concurrency := options.get_concurrency(session.config)) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.scheduler import (  # noqa: PLC0415 - inert until used
            EpisodeScheduler,
        )

        EpisodeScheduler.start(session, concurrency, get_session(session.config))


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Print the session's notes; an xdist worker has no terminal to print them on."""
    episodes = find_session(config)
    return [make_printable(f"note: {note}") for note in (episodes.notes if episodes else ())]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the notes of an xdist worker to the main process."""
    if options.is_worker(session.config) and (episodes := find_session(session.config)):
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
        output[NOTES] = list(episodes.notes)
        output[options.ADAPTIVE_STOPS] = episodes.dump_adaptive_stops()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Write the episode as started before any of the test's code runs."""
    if detection.EPISODE not in item.stash:
        return (yield)
    if (scheduler := _get_scheduler(item)) is not None and scheduler.is_started(item):
        get_session(item.config).activate(item)
    else:
        get_session(item.config).begin(item)
    try:
        result = yield
    except INTERRUPTIONS as interruption:
        get_session(item.config).interrupt(item, interruption)
        raise
    get_session(item.config).raise_marker_problem(item)
    loop_members.refuse_foreign_loops(item)
    foreign_repeats.refuse_foreign_repeats(item)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run an async fixture on the episodes' loop, and an evaluation's shared one in no episode."""
    __tracebackhide__ = True
    with ExitStack() as setup:
        if evaluation_files.EVALUATION in request.config.stash:
            from ci_agent_eval.pytest_plugin.evaluation import measurement  # noqa: PLC0415 - inert until used

            setup.enter_context(measurement.leave_episode(fixturedef))
        if not loop_members.runs_fixture(fixturedef, request):
            return (yield)
        from ci_agent_eval.pytest_plugin.concurrency.async_fixtures import (  # noqa: PLC0415 - inert until used
            run_on_session_loop,
        )

        setup.enter_context(run_on_session_loop(fixturedef, request))
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge the episode after its test returned: checks and hard budgets fail the test."""
    try:
        yield from _judge_call(item)
    except BaseException as error:
        _note_call(item, error)
        raise
    _note_call(item, None)


def _judge_call(item: pytest.Item) -> Generator[None, None, None]:
    if detection.EPISODE in item.stash:
        get_session(item.config).mark_called(item)
    try:
        yield
        if detection.EPISODE in item.stash:
            get_session(item.config).raise_swallowed_exception(item)
    except INTERRUPTIONS as interruption:
        if detection.EPISODE in item.stash:
            get_session(item.config).interrupt(item, interruption)
        raise
    except BaseException as error:
        if detection.EPISODE in item.stash:
            get_session(item.config).handle_exception(item, error)
        raise
    if detection.EPISODE in item.stash:  # only now, if the test asked for the fixture itself
        simulations.check_scenario_ran(item)
        get_session(item.config).judge(item)


def _note_call(item: pytest.Item, error: BaseException | None) -> None:
    if detection.EPISODE in item.stash:
        get_session(item.config).note_call(item, error)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Note the exception of the test function, which a wrapper of another plugin might swallow."""
    episode_item = pyfuncitem.stash.get(detection.EPISODE, None)
    if episode_item is None or (running := episode_item.running) is None:
        return (yield)
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        running.raised = error
        raise
    running.raised = None  # of an earlier call, which a plugin has repeated
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the episode's ending, and pass its figures to JUnit and the terminal summary."""
    if detection.EPISODE in item.stash:
        get_session(item.config).measure_failure(item, call)
        if (scheduler := _get_scheduler(item)) is not None:
            scheduler.set_phase_times(item, call)
    if detection.EPISODE in item.stash and call.excinfo is not None:
        hide_own_frames()
    report = yield
    if detection.EPISODE in item.stash:
        get_session(item.config).record_phase(item, call, report)
        hide_own_traceback(item, call, report)
    if (episodes := find_session(item.config)) is not None:
        episodes.redact_report(report)
    if detection.EPISODE in item.stash and report.longrepr is not None:
        from ci_agent_eval.pytest_plugin.episodes import report_texts  # noqa: PLC0415 - inert until used

        has_terminal = item.config.pluginmanager.hasplugin("terminalreporter")
        has_colors = has_terminal and item.config.get_terminal_writer().hasmarkup
        report_texts.make_failure_printable(report, has_colors=has_colors)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_exception_interact(
    node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]
) -> None:
    """Show the conversation before the prompt of `--pdb`."""
    is_debugging = node.config.getoption("usepdb", default=False)
    if not is_debugging or not isinstance(node, pytest.Item) or call.excinfo is None:
        return
    if detection.EPISODE in node.stash:
        from ci_agent_eval.pytest_plugin.episodes import debugging  # noqa: PLC0415 - inert until used

        debugging.prepare_debugger(node, call.excinfo)


def _get_scheduler(item: pytest.Item) -> EpisodeScheduler | None:
    scheduler: EpisodeScheduler | None = item.config.stash.get(options.SCHEDULER, None)
    return scheduler


def _select_episodes(config: pytest.Config, items: list[pytest.Item]) -> None:
    stash = config.stash
    removed_episodes = config.pluginmanager.get_plugin(options.REMOVED_EPISODES)
    removed = () if removed_episodes is None else removed_episodes.list_scenarios(items)
    shard = stash.get(options.SHARD, None)
    left_out = stash.get(options.LEFT_OUT, None)
    given = () if left_out is None else (left_out,)
    get_session(config).select(items, stash.get(DESELECTED, 0), shard, removed, *given)
