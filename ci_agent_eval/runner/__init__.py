"""Running a suite: pytest in a supervised subprocess, in the suite's own interpreter."""

from ci_agent_eval.runner.progress import Progress
from ci_agent_eval.runner.suite import (
    SuiteCommand,
    SuiteRun,
    list_scenarios,
    run_suite,
    suite_environ,
)

__all__ = [
    "Progress",
    "SuiteCommand",
    "SuiteRun",
    "list_scenarios",
    "run_suite",
    "suite_environ",
]
