"""The commands that a reviewer of a regression needs: run it again, or accept it."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.natural_order import build_natural_key
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.gate.failure_groups import group_failures, index_comparison
from ci_agent_eval.gate.report import Report
from ci_agent_eval.gate.waivers import ACKNOWLEDGEABLE
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.links import repository_path
from ci_agent_eval.render.phrases import ScenarioKey, get_key

MAX_WORD = 200
"""Characters of a name in a command; a longer one would not be copied as a whole."""
_FILE_NAME = re.compile(r"\.\w+$")
"""The end of a test's file. Ids of imported results begin with a tool: `promptfoo[gpt-5.1]`."""
ACCEPTED_DAYS = 30
"""Days until a proposed acknowledgement expires; a date would differ in every report."""


def list_commands(report: Report) -> Iterator[str]:
    """Yield the command that runs the first regressed scenario, and the one that accepts it."""
    regressed = _order_regressed(report)
    scenarios = {get_key(one): one for one in report.summary.scenarios}
    for key in regressed[:1]:
        if key in scenarios and (command := build_run_command(scenarios[key])):
            yield command
    acceptable = [key for key in regressed if not _fails_anyway(report, key)]
    for key in acceptable[:1]:
        if _is_copyable(key[0]) and not key[0].startswith("-"):
            name = shlex.quote(key[0])
            yield f'agent-eval acknowledge {name} --until {ACCEPTED_DAYS}d --reason "..."'


def build_run_command(scenario: ScenarioSummary, folder: str = "") -> str:
    """Return the command that runs a scenario as often as it ran.

    Empty: its name is too long, or it has no test, as traces and other tools' results. A file
    outside of the repository, or one that reads like an option, is left out. `folder` is the path
    from the reader's working folder to that of the files.
    """
    test = (scenario.nodeid or "").partition("::")[0]
    if not scenario.file and not _FILE_NAME.search(test):
        return ""
    file = repository_path(scenario.file or test)
    paths = [posixpath.join(folder, file)] if file and not file.startswith("-") else []
    words = ["agent-eval", "run", *paths, "--scenario", scenario.scenario_id]
    if scenario.tally.ran > 1:
        words += ["--iterations", str(scenario.tally.ran)]
    return shlex.join(words) if all(map(_is_copyable, words)) else ""


def _order_regressed(report: Report) -> Sequence[ScenarioKey]:
    """Return the scenarios that regressed, in the order of their causes, then the others."""
    found = _find_regressed(report)
    shown = [get_key(one.scenario) for group in group_failures(report) for one in group.scenarios]
    others = sorted(found.difference(shown), key=lambda key: build_natural_key(key[0]))
    return [*(key for key in shown if key in found), *others]


def _find_regressed(report: Report) -> set[ScenarioKey]:
    """Return the scenarios that fail the gate and did not in the baseline."""
    compared = index_comparison(report)
    found = {
        (reason.scenario_id, reason.agent)
        for reason in report.verdict.reasons
        if reason.scenario_id is not None and reason.kind in ACKNOWLEDGEABLE
    }
    newly = {key for key, one in compared.items() if one.change == "newly_failing"}
    failing = {
        get_key(item.scenario) for item in report.judged_scenarios() if item.judgement.fails_alone
    }
    return found | (newly & failing)


def _fails_anyway(report: Report, key: ScenarioKey) -> bool:
    """Say whether a reason gates that no acknowledgement accepts."""
    return any(
        (reason.scenario_id, reason.agent) == key and reason.kind not in ACKNOWLEDGEABLE
        for reason in report.verdict.reasons
    )


def _is_copyable(text: str) -> bool:
    return len(text) <= MAX_WORD and visible_line(text, MAX_WORD) == text and "`" not in text
