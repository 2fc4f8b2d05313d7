"""Each line of `cases.txt` is a case: the answer, the command, and behind `##` the reason.

`⏎` in a command is a new line. The sections `powershell` and `cmd` are of these shells.
The answers: `full`, `targeted`, `nothing` (pytest starts and runs no test), `no` (it does not).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.steering.policy.detection import detect_in_command, detect_in_text
from ci_agent_eval.steering.policy.model import DetectionResult, Rules
from ci_agent_eval.steering.policy.words import ShellCommand, make_words
from tests.tables import read_sections

CASES = Path(__file__).parent / "cases.txt"


def answer(finding: DetectionResult) -> str:
    if not finding.pytest:
        return "no"
    if finding.full_suite:
        return "full"
    return "nothing" if finding.reason.endswith("runs no test") else "targeted"


def detect_in_argv(words):
    return detect_in_command(ShellCommand(make_words(*words)), Rules(), ".")


class Case(NamedTuple):
    """One line of a file, and its section with the number of the line."""

    place: str
    expected: str
    command: str
    reason: str
    shell: str = "bash"


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of all sections of a file."""
    for name, section in read_sections(path).items():
        shell = name if name in ("powershell", "cmd") else "bash"
        for number, line in enumerate(section.splitlines(), 1):
            if line and not line.startswith("#"):
                expected, rest = line.split(" ", 1)
                command, _, reason = rest.rpartition(" ## ")
                text = command.strip(" ").replace("⏎", "\n")
                yield Case(f"{name}:{number}", expected, text, reason, shell)


def cases() -> list[Case]:
    return list(read_cases(CASES))


def test_each_command_gets_the_answer_of_its_case():
    found = {case: detect_in_text(case.command, shell=case.shell) for case in cases()}

    wrong = [
        (case, finding.reason)
        for case, finding in found.items()
        if answer(finding) != case.expected or (finding.command is not None) != finding.pytest
    ]
    assert wrong == []


def test_there_are_at_least_400_cases_each_with_a_reason():
    assert len(cases()) >= 400
    assert all(case.reason for case in cases())
    assert {case.expected for case in cases()} == {"full", "targeted", "nothing", "no"}
