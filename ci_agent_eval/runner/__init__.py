"""Run a suite: pytest in a supervised subprocess, in the suite's own interpreter."""

from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.progress import RunProgress
from ci_agent_eval.runner.suite import (
    SuiteRun,
    filter_suite_environ,
    list_scenarios,
    run_suite,
)

__all__ = [
    "RunProgress",
    "SuiteCommand",
    "SuiteRun",
    "filter_suite_environ",
    "list_scenarios",
    "run_suite",
]
