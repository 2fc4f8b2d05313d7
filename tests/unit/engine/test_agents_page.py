"""The blocks of docs/agents.md: compiled, and run where no library of others is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ci_agent_eval.engine.adapters.transcript import TYPES, Transcript
from tests.tables import each_row

PAGE = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]
OWN = [code for code in PYTHON if not code.startswith("# needs:")]


def test_the_page_has_its_blocks():
    assert (len(PYTHON), len(OWN)) == (5, 4)


@each_row("code", OWN)
def test_what_needs_no_other_library_runs(code, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    exec(compile(code, "agents.md", "exec"), {})


def test_the_lines_of_a_program_are_read():
    (block,) = [code for kind, code in BLOCKS if kind == "json"]
    heard = Transcript()
    for number, line in enumerate(block.splitlines()):
        heard.add_line(line, number)
    assert [turn.content for turn in heard.turns] == [
        "Let me look.",
        "Your checking balance is $1,500.00",
    ]
    assert {json.loads(line)["type"] for line in block.splitlines()} == set(TYPES)
    assert heard.turns[0].tokens.total == 145
