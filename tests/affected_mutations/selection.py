"""Ask the product which scenarios it would run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.affected_mutations.copies import Workplace
from tests.affected_mutations.measurement import Selection
from tests.affected_mutations.processes import run_command


def ask_product(
    copy: Path, environ: dict[str, str], workplace: Workplace, *, cold: bool
) -> Selection:
    """Run `agent-eval why` in a copy; a suite that cannot be collected is a refusal."""
    answer, log = copy.with_suffix(".json"), copy.with_suffix(".log")
    baseline = ["--baseline", str(workplace.baseline)]
    command = ["-m", "ci_agent_eval", "why", *baseline, "--format", "json"]
    # As for the console script, the copy's own modules are no modules of the command.
    options = ["-P"] if cold else []
    code = run_command([*options, *command], copy, environ, answer, errors=log, cold=cold)
    errors = log.read_text("utf-8").strip()[-500:]
    if code != 0:
        return Selection(frozenset(), "refused" if code == 2 else "crashed", errors)
    document = json.loads(answer.read_text("utf-8"))
    selected = (row["scenario_id"] for row in document["scenarios"] if row["selected"])
    full_run = document["full_run"]
    scope = "full" if full_run else "partial"
    return Selection(frozenset(selected), scope, json.dumps(full_run))
