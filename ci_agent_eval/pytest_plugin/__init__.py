"""The pytest plugin: every hook that we implement, in pytest's order, each with what it calls.

Every start of pytest imports this module where the package is installed. It stays inert until an
episode or a report directory: it imports neither pydantic nor the contract, and writes nothing.
`parts.Parts` lists what a session has.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin import options, run
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.collection import iterations
from ci_agent_eval.pytest_plugin.evaluation import evaluation_files
from ci_agent_eval.pytest_plugin.fixtures import (  # noqa: F401 - fixtures
    _agent_eval_run,
    _conversation_fixture,
    _recorder_fixture,
    aitest_run,
    episode,
    episode_alone,
    episode_clock,
    llm_assert,
    llm_score,
    model_environment,
    simulation,
)
from ci_agent_eval.pytest_plugin.opik import experiment_options
from ci_agent_eval.pytest_plugin.parts import get_parts

# The start of pytest.


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Define the hooks for other plugins."""
    pluginmanager.add_hookspecs(options.EpisodeHooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    options.add_options(parser)
    suite_budgets.add_budget_options(parser)
    experiment_options.add_experiment_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> None:
    """Count assertions, before a module of the project is imported.

    Also keep pytest's parser, which later shows the exclusions of the command line.
    """
    get_parts(early_config).parser = parser
    run.watch_assertions(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, refuse invalid settings before any test runs, and make the parts."""
    run.configure(config)
    config.pluginmanager.register(HooksWithoutConfig(config), "ci_agent_eval_session")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Open the report directory, if one was requested, before any test runs."""
    run.start(session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send an xdist worker what it needs."""
    run.prepare_worker(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep adaptive iterations together, and queue more items on workers with concurrency."""
    from ci_agent_eval.pytest_plugin.concurrency.xdist_scheduling import (  # noqa: PLC0415 - needs xdist
        make_scheduler,
    )

    return make_scheduler(config, log, options.get_concurrency(config))


# The collection.


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the evaluations that pytest would leave out."""
    return evaluation_files.collect_evaluation(file_path, parent)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> Generator[None, pytest.Module | None, pytest.Module | None]:
    """Mark the module of an evaluation, whichever plugin creates it."""
    module = yield
    return evaluation_files.mark_evaluation_module(module, module_path, parent.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Repeat episodes, after every other parameter: the iteration ends the node id."""
    run.parametrize_scenarios(metafunc)
    yield
    iterations.repeat_episodes(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report modules that cannot be measured, and invalid markers, as collection errors."""
    report = yield
    report = evaluation_files.refuse_unrecorded_module(report, collector)
    return run.refuse_unreadable_markers(report)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note the tests of a session and their order, before any are deselected."""
    run.note_item(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select what runs, after other plugins."""
    run.select_items(config, items)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the episodes that are deselected, and note by what."""
    run.count_deselected(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Register the selected episodes before the terminal reports the collection."""
    run.select_episodes(session)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Print the session's notes; an xdist worker has no terminal to print them on."""
    return run.list_notes(config)


# The tests.


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start concurrency; at the end say whether a budget has stopped the workers."""
    run.prepare_tests(session)
    budgets = get_parts(session.config).budgets
    return (yield) if budgets is None else (yield from budgets.watch_loop(session))


class TestHooks:
    """The hooks of tests, which `run.watch_tests` registers once a test is ours.

    Tests of other projects do not wait for them. It is just before they run, so that these hooks
    are called before anyio's, which also want to be first.
    """

    def __init__(self) -> None:
        from ci_agent_eval.pytest_plugin import phases  # noqa: PLC0415 - inert until used

        self._phases = phases

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Make a test the current one, and free its episode's state at its end."""
        return (yield from self._phases.take_turn(item, nextitem))

    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_protocol")
    def pytest_pass_over(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Pass over a test that is not needed, or that the run can no longer afford."""
        return self._phases.pass_over(item, nextitem)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Write the episode as started before any of the test's code runs."""
        return (yield from self._phases.begin(item))

    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_setup")
    def pytest_refuse_setup(self, item: pytest.Item) -> None:
        """Refuse a test that must not run, inside of all wrappers, which a teardown relies on."""
        self._phases.refuse(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Run an async fixture on our loop, and an evaluation's shared one in no episode."""
        __tracebackhide__ = True
        return (yield from self._phases.set_up_fixture(fixturedef, request))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Judge the episode after its test returned: checks and hard budgets fail the test."""
        return (yield from self._phases.call(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Note the exception of the test, which a wrapper of another plugin might swallow."""
        return (yield from self._phases.note_exception(pyfuncitem))

    @pytest.hookimpl(tryfirst=True, specname="pytest_pyfunc_call")
    def pytest_run_coroutine(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an `async def` test, unless another plugin's loop runs it."""
        return self._phases.run_coroutine(pyfuncitem)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the episode's ending, and pass its figures to JUnit and the terminal summary."""
        return (yield from self._phases.report(item, call))

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]
    ) -> None:
        """Show the conversation before the prompt of `--pdb`."""
        self._phases.prepare_debugger(node, call)


class HooksWithoutConfig:
    """The hooks to which pytest does not pass the configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._parts = get_parts(config)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep files that could not be collected or were skipped."""
        run.note_collected(report, self._parts)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a report carries, also one from an xdist worker."""
        run.note_report(report, self._parts, self._config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """End all episodes before pytest closes its captured streams, to which they write."""
        run.interrupt(self._parts, excinfo.value)

    def pytest_internalerror(self) -> None:
        """Remember that pytest had an internal error."""
        if (report := self._parts.run) is not None:
            report.note_internal_error()


# The end.


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what an xdist worker sends at its end."""
    run.take_worker_output(node)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Send what a worker has found; write all results once every worker has finished."""
    return (yield from run.finish(session))


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
def pytest_hide_shown_failures(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Keep out of pytest's lists what a block says whole, in a run by `agent-eval run`."""
    return (yield from run.hide_shown_failures(terminalreporter))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write what the session has found."""
    run.write_summary(terminalreporter)
