"""`agent-eval mutate`: change the recorded episodes of a run, and play them to its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ci_agent_eval.analysis.mutations.derive import RecordedTest, build_plan, derive_tests
from ci_agent_eval.analysis.mutations.outcome import (
    PlayedEpisodes,
    build_mutation_report,
    index_played,
)
from ci_agent_eval.app.report_folder import write_mutations
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.mutations import MutationReport
from ci_agent_eval.contract.playback import PlaybackPlan
from ci_agent_eval.contract.results import RESULTS_NAME, Results
from ci_agent_eval.contract.validation_errors import describe_validation_error
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.runner import SuiteCommand, run_suite
from ci_agent_eval.storage.regular_file import open_regular

Echo = Callable[[str], None]

_ENDED = (0, 1)
"""pytest's exit statuses after a run that came to its end: all passed, some failed."""


class InterruptedPlaybackError(InputError):
    """Raised if a signal ended the playback."""

    def __init__(self, signal: int) -> None:
        super().__init__("the playback was interrupted; nothing is written")
        self.exit_code = 128 + signal


def mutate_suite(
    command: SuiteCommand,
    *,
    scenarios: tuple[str, ...] = (),
    environ: Mapping[str, str],
    echo: Echo,
) -> MutationReport:
    """Play changes of the run in the command's report folder to the suite; write the report.

    `scenarios` are ids; empty: all. Raises InputError if there is no such run, if it has no such
    scenario, or if the playback does not finish.
    """
    recorded = _read_results(command.report_dir)
    tests = _select_tests(derive_tests(recorded.episodes), scenarios)
    plan = build_plan(tests)
    played = _play(command, plan, environ, echo) if plan.tests else {}
    report = build_mutation_report(tests, played, recorded.suite)
    write_mutations(command.report_dir, report)
    return report


def _read_results(folder: Path) -> Results:
    path = folder / RESULTS_NAME
    try:
        with open_regular(path) as file:
            return Results.model_validate_json(file.read())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); run the suite first with `agent-eval run`"
        ) from None
    except ValueError as error:
        problem = describe_validation_error(error)
        raise InputError(f"{path}: {problem}; run the suite anew") from None


def _select_tests(
    tests: tuple[RecordedTest, ...], scenarios: tuple[str, ...]
) -> tuple[RecordedTest, ...]:
    known = {test.episode.scenario_id for test in tests}
    for scenario in scenarios:
        if scenario not in known:
            raise InputError(
                f"--scenario: the recorded run has no scenario {scenario!r}; it has "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    return tuple(t for t in tests if not scenarios or t.episode.scenario_id in scenarios)


def _play(
    command: SuiteCommand, plan: PlaybackPlan, environ: Mapping[str, str], echo: Echo
) -> PlayedEpisodes:
    """Run the suite with the plays; its output is shown only if it does not come to its end."""
    changes = sum(len(test.plays) - 1 for test in plan.tests)
    echo(
        f"Playing {pluralize(changes, 'change')} of {pluralize(len(plan.tests), 'scenario')} to "
        "the tests; no agent and no model is asked"
    )
    lines: list[str] = []
    with TemporaryDirectory(prefix="agent-eval-") as temporary:
        folder = Path(temporary)
        file = folder / "playback.json"
        file.write_text(canonical_json(plan), encoding="ascii")
        playing = replace(command, report_dir=folder / "report", playback=file)
        run = run_suite(playing, environ=environ, emit=lines.append)
        if run.interrupted_by is not None:
            raise InterruptedPlaybackError(run.interrupted_by)
        if run.exit_status not in _ENDED:
            for line in lines:
                echo(line)
            raise InputError(
                f"the playback did not come to its end (pytest ended with status "
                f"{run.exit_status}); its output above says why"
            )
        return index_played(_read_results(folder / "report").episodes)
