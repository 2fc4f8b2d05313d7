"""Sentences about which scenarios run, and why."""

from __future__ import annotations

from ci_agent_eval.dependencies.selection.model import (
    ChangedDependency,
    EarlierProblem,
    FullRun,
    FullRunCause,
    SelectionReason,
    UnseenDependency,
)

_FULL_RUNS: dict[FullRunCause, str] = {
    "requested": "everything was requested",
    "no_dependencies": "the baseline has no recorded dependencies{detail}",
    "incomplete": "the baseline's record of dependencies is incomplete",
    "unclean": "the baseline ran with files that differed from its commit",
    "other_recorder": "another version of agent-eval recorded the baseline's dependencies",
    "expired": "the baseline's results are too old",
    "no_commit": "git does not have the baseline's commit here{detail}; fetch the history "
    "(actions/checkout: fetch-depth: 0)",
    "file_added": "{name} is new",
    "file_removed": "{name} was deleted",
    "configuration": "{name} changed, which can affect every scenario",
    "environment": "Python, the platform or an installed package differs",
    "event": "everything runs on the event {name}",
    "schedule": "everything runs on a schedule",
    "untrusted": "the baseline is a file of the checkout, which the change can have written; use "
    "baseline artifact or git:REF:PATH",
}

_PROBLEMS: dict[EarlierProblem, str] = {
    "failed": "it failed before",
    "flaky": "some of its iterations failed before",
    "inconclusive": "not all of its iterations were judged before",
    "new": "it is new",
    "no_dependencies": "its dependencies were not recorded",
}

_CHANGES = {
    "function": "the body of {name} in {path} changed",
    "definitions": "{path} changed outside of its functions' bodies",
    "module": "{path} changed",
    "file": "{path} changed, which it reads",
    "folder": "{path} is new or was deleted, in a folder that it lists",
    "absent_file": "{path} is there now, which it looked for before",
    "declared_file": "{path} changed, which its depends_on names",
    "variable": "the environment variable {path} has another value",
}

_UNSEEN = {
    "child_process": "it started {detail}, whose files are not observed; depends_on can name them",
    "host": "it used the host {detail}; declare it with depends_on if its answers do not change",
    "native_code": "it used the native code {detail}",
    "outside_file": "it read {detail}, outside of the repository",
    "symlink": "it followed a link to {detail}, outside of the repository",
    "untracked_file": "it read {detail}, which git does not track",
    "unwatched": "a part of it was not observed: {detail}",
}


def describe_full_run(found: FullRun) -> str:
    """Return why everything runs."""
    detail = f" ({found.detail})" if found.detail else ""
    return _FULL_RUNS[found.cause].format(detail=detail, name=found.detail)


def describe_selection_reason(reason: SelectionReason) -> str:
    """Return why a scenario runs."""
    if isinstance(reason, ChangedDependency):
        return _CHANGES[reason.kind].format(path=reason.path, name=reason.name)
    if isinstance(reason, UnseenDependency):
        return _UNSEEN[reason.cause].format(detail=reason.detail)
    return _PROBLEMS[reason]
