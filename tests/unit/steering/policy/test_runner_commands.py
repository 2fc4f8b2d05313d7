"""Each line of `runner_cases/` is a test, with the runner of the file's name switched on.

The lines were written from each tool's documentation before its rules. The answers are those of
`test_cases.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent_eval.steering import runners
from ci_agent_eval.steering.policy.detection import _detect_in_layers, detect_in_text
from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.words import ShellScript
from ci_agent_eval.steering.runners import RUNNER_NAMES, find_runners, load_runners
from tests.unit.steering.policy.test_cases import answer

CASES = Path(__file__).parent / "runner_cases"


def runner_cases() -> Iterator[object]:
    for path in sorted(CASES.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line and not line.startswith("#"):
                expected, rest = line.split(" ", 1)
                command, _, reason = rest.rpartition(" ## ")
                yield pytest.param(
                    path.stem, expected, command.strip(), reason, id=f"{path.stem}:{number}"
                )


ALL_CASES = list(runner_cases())
ALL_RUNNERS = Rules(runners=load_runners(RUNNER_NAMES))


@pytest.mark.parametrize(("runner", "expected", "command", "reason"), ALL_CASES)
def test_a_command_gets_the_answer_of_its_case(runner, expected, command, reason):
    found = detect_in_text(command, rules=Rules(runners=load_runners([runner])))

    assert answer(found) == expected, f"{reason}; but: {found.reason}"
    assert all(intent.runner == runner for intent in found.intents)
    assert answer(detect_in_text(command, rules=ALL_RUNNERS)) == expected


@pytest.mark.parametrize(("_", "__", "command", "___"), ALL_CASES)
def test_without_settings_only_pytest_is_judged(_, __, command, ___):
    assert not detect_in_text(command).pytest


@pytest.mark.parametrize(("_", "__", "command", "___"), ALL_CASES)
def test_the_fast_filter_misses_no_run(_, __, command, ___):
    unfiltered = _detect_in_layers([ShellScript(command)], "", ALL_RUNNERS, ".")

    assert detect_in_text(command, rules=ALL_RUNNERS).full_suite == unfiltered.full_suite


def test_each_runner_has_a_file_and_cases_of_both_kinds():
    counts = Counter((case.values[0], case.values[1] == "full") for case in ALL_CASES)
    folder = Path(runners.__file__).parent

    assert {path.stem for path in folder.glob("*.toml")} == set(RUNNER_NAMES)
    assert all(counts[name, kind] >= 10 for name in RUNNER_NAMES for kind in (True, False))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cargo test -q", "cargo test --workspace 2>&1 | tail -5"),
        ("go test ./...", "timeout 60 go test -v -count=1 ./..."),
        ("npm test", "yarn run test"),
        ("mvn -q test", "./mvnw test -B"),
        ("tox -q", "python -m tox"),
    ],
)
def test_spelling_changes_no_intent(one, other):
    assert (
        detect_in_text(one, rules=ALL_RUNNERS).intents
        == detect_in_text(other, rules=ALL_RUNNERS).intents
    )


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    rules = Rules(aliases=aliases, alias_runners=load_runners(find_runners(aliases)))

    assert answer(detect_in_text(command, rules=rules)) == expected
    assert find_runners(["make test", "", "./mvnw verify"]) == ()
