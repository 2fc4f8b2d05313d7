"""Running a suite: pytest in a process of its own, watched from here."""

from ci_agent_eval.runner.progress import Progress
from ci_agent_eval.runner.suite import (
    REPORTER_VARIABLES,
    SuiteCommand,
    SuiteRun,
    list_scenarios,
    run_suite,
)

__all__ = [
    "REPORTER_VARIABLES",
    "Progress",
    "SuiteCommand",
    "SuiteRun",
    "list_scenarios",
    "run_suite",
]
