"""How a check run gets its conclusion: ours, and those that a killed publish left in progress."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import Api, CheckRun
from ci_agent_eval.github.plan import Conclusion
from ci_agent_eval.github.waiting import Log, persist
from ci_agent_eval.github.writes import Json, complete_check_run

_SUPERSEDED = {
    "title": "Superseded by a later run",
    "summary": "The run that opened this check run ended before it could complete it. "
    "The newest check run of this name tells how this commit stands.",
}


def complete(
    api: Api, run: CheckRun, conclusion: Conclusion, external_id: str, output: Json
) -> None:
    """Conclude a check run; raises PublishError.

    The write is repeated without a look at the check run: twice changes nothing, and a look
    that is refused would leave it in progress.
    """
    write = complete_check_run(run.id, external_id, output, conclusion)
    persist(lambda _number: api.send_check_run(write), api.wait)


def supersede(api: Api, run: CheckRun, before: Sequence[CheckRun], log: Log) -> None:
    """Complete, as failed, what is older than `run` and still in progress.

    `before` are the check runs of this program and this name that the commit had when
    publishing began. Those of another app are not ours to change. What fails is logged and
    raises nothing: `run` is the newest and counts.
    """
    is_new = all(one.id != run.id for one in before)
    for old in before:
        is_open = old.status != "completed" and old.app_id == run.app_id
        if is_open and (is_new or old.id < run.id):
            _supersede_one(api, old, log)


def _supersede_one(api: Api, old: CheckRun, log: Log) -> None:
    try:
        complete(api, old, "failure", old.external_id, _SUPERSEDED)
    except PublishError as error:
        log("warning", f"Check run {old.id} of an earlier run may still be in progress. {error}")
    else:
        log("notice", f"Completed check run {old.id}, which an earlier run had left in progress.")
