"""Each line of `runner_cases.txt` is a case, with the runner of its section switched on.

The lines were written from each tool's documentation before its rules. The answers are those of
`test_cases.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

from ci_agent_eval.steering import runners
from ci_agent_eval.steering.policy.detection import detect_in_text, detect_unfiltered
from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.words import ShellScript
from ci_agent_eval.steering.runners import RUNNER_NAMES, load_runners
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import Case, answer, read_cases

CASES = Path(__file__).parent / "runner_cases.txt"


ALL_RUNNERS = Rules(runners=load_runners(RUNNER_NAMES))


def cases() -> list[tuple[str, Case]]:
    """Return the cases with their runners."""
    return [(case.place.partition(":")[0], case) for case in read_cases(CASES)]


def judge(runner: str, case: Case) -> str | None:
    """Return what is wrong with the answers to a case."""
    own = detect_in_text(case.command, rules=Rules(runners=load_runners([runner])))
    of_all = detect_in_text(case.command, rules=ALL_RUNNERS)
    unfiltered = detect_unfiltered(ShellScript(case.command), ALL_RUNNERS, ".")
    if answer(own) != case.expected or any(intent.runner != runner for intent in own.intents):
        return f"{case}: {own}"
    if answer(of_all) != case.expected:
        return f"{case}: with all runners: {of_all}"
    if unfiltered.full_suite != of_all.full_suite:
        return f"{case}: the fast filter misses the run"
    return f"{case}: a run without settings" if detect_in_text(case.command).pytest else None


def test_each_command_gets_the_answer_of_its_case():
    assert [problem for problem in itertools.starmap(judge, cases()) if problem] == []


def test_each_runner_has_a_file_and_cases_of_both_kinds():
    counts = Counter((runner, case.expected == "full") for runner, case in cases())
    folder = Path(runners.__file__).parent

    assert {path.stem for path in folder.glob("*.toml")} == set(RUNNER_NAMES)
    assert all(counts[name, kind] >= 10 for name in RUNNER_NAMES for kind in (True, False))


@each_row(
    ("one", "other"),
    [
        ("cargo test", "cargo test --exclude slow --workspace"),
        ("cargo test", "npm test"),
        ("tox", "tox -e py312"),
        ("mvn test", "mvn test -DexcludedGroups=slow"),
        ("go test ./...", "cd backend && go test ./..."),
    ],
)
def test_other_tests_are_another_intent(one, other):
    assert (
        detect_in_text(one, rules=ALL_RUNNERS).intents
        != detect_in_text(other, rules=ALL_RUNNERS).intents
    )


@each_row(
    ("command", "expected"),
    [
        ("cargo test", "full"),
        ("cargo test foo", "targeted"),
        ("cargo test --no-run", "nothing"),
        ("go test ./...", "full"),
        ("go test ./... -run TestParse", "targeted"),
        ("npm test", "full"),
        ("npm test -- src/price.test.ts", "targeted"),
        ("make test", "full"),
        ("go test", "no"),
    ],
)
def test_an_alias_of_a_runner_follows_its_rules(command, expected):
    aliases = ("cargo test", "go test ./...", "npm test", "make test")

    assert answer(detect_in_text(command, rules=Rules(aliases=aliases))) == expected
