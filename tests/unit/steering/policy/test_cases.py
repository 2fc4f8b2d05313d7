"""Each line of `cases/` is a test: the answer, the command, and behind `##` the reason.

`⏎` in a command is a new line. A file named `*.powershell.txt` or `*.cmd.txt` is of that shell.
The answers: `full`, `targeted`, `nothing` (pytest starts and runs no test), `no` (it does not).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.model import DetectionResult

CASES = Path(__file__).parent / "cases"


def answer(finding: DetectionResult) -> str:
    if not finding.pytest:
        return "no"
    if finding.full_suite:
        return "full"
    return "nothing" if finding.reason.endswith("runs no test") else "targeted"


def cases() -> Iterator[object]:
    for path in sorted(CASES.glob("*.txt")):
        shell = {"powershell": "powershell", "cmd": "cmd"}.get(path.stem.rpartition(".")[2], "bash")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line and not line.startswith("#"):
                expected, rest = line.split(" ", 1)
                command, _, reason = rest.rpartition(" ## ")
                yield pytest.param(
                    expected,
                    command.strip(" ").replace("⏎", "\n"),
                    shell,
                    reason,
                    id=f"{path.stem}:{number}",
                )


@pytest.mark.parametrize(("expected", "command", "shell", "reason"), list(cases()))
def test_a_command_gets_the_answer_of_its_case(expected, command, shell, reason):
    finding = detect_in_text(command, shell=shell)

    assert answer(finding) == expected, f"{reason}; but: {finding.reason}"
    assert (finding.command is not None) == finding.pytest


def test_there_are_at_least_400_cases_each_with_a_reason():
    found = list(cases())

    assert len(found) >= 400
    assert all(case.values[3] for case in found)
    assert {case.values[0] for case in found} == {"full", "targeted", "nothing", "no"}
