"""`agent-eval judge` as a command: its refused inputs."""

from __future__ import annotations

import pytest

from tests.judged_results import HEAD, said, store
from tests.processes import run_agent_eval

SUITE = (said("a", "Monday."), said("b", "Soon."))
EXACT = 'CHECKS = [Rubric("It is exact.", JUDGE, name="exact")]'


@pytest.fixture
def judge(tmp_path):
    """Run the command on stored episodes, judged by a file; returns the ended process."""

    def run(source, *options, episodes=SUITE):
        store(tmp_path / "agent-eval-report", *episodes)
        (tmp_path / "judges.py").write_text(HEAD + source)
        return run_agent_eval("judge", "judges.py", *options, cwd=tmp_path)

    return run


@pytest.mark.parametrize(
    "source",
    ['CHECKS = {"zzz": []}', 'CHECKS = {"zzz": RequiredText("x")}', 'BUDGETS = {"zzz": {}}'],
)
def test_a_pattern_without_a_scenario_is_an_input_error(judge, source):
    done = judge(source)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "agent-eval: judges.py: 'zzz' matches no scenario of the results; correct the pattern, or "
        "name other results\n"
    )


def test_a_missing_file_of_labels_is_an_input_error_with_a_remedy(judge):
    done = judge(EXACT, "--labels", "gone.csv")
    assert done.returncode == 2
    assert done.stderr == (
        "agent-eval: gone.csv: cannot be read (No such file or directory); check --labels\n"
    )
