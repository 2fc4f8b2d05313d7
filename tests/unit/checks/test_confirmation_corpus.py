"""How well `ConfirmedTools` reads labelled exchanges; docs/checks.md states the figures.

The readings are kept in a table without text, so that the figures are held everywhere; where
the corpus is, the table is held against it (`UPDATE_GOLDEN=1` writes it).
"""

from __future__ import annotations

import csv
import json
import os
import random
from pathlib import Path

import pytest

from ci_agent_eval.analysis.intervals import compute_wilson_interval
from ci_agent_eval.checks import ConfirmedTools
from tests.builders import talk, tool_call, turn

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "tests/fixtures/confirmations/readings.tsv"
_BESIDE = ROOT.parent / "shared/corpus/confirmations"
CORPUS = Path(os.environ.get("AGENT_EVAL_CONFIRMATIONS", _BESIDE)) / "confirmations.jsonl"
ABSENT = "the labelled exchanges are not here; name their folder in AGENT_EVAL_CONFIRMATIONS"


def rows():
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def reading(row):
    """What the check says of a call after the agent's last message and the user's reply."""
    asked, call = turn(row["agent_last_message"]), tool_call(row["tool"])
    episode = talk(asked, row["user_reply"], turn("", tool_calls=[call]))
    (found,) = ConfirmedTools(row["tool"]).assertions(episode)
    return "passed" if found.passed else "flagged"


@pytest.mark.skipif(not CORPUS.is_file(), reason=ABSENT)
def test_the_table_is_what_the_check_says_of_the_corpus():
    given = map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    lines = ["id\ttask\tlabel\treading"]
    lines += ["\t".join((r["id"], str(r["task_id"]), r["label"], reading(r))) for r in given]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        TABLE.write_text(text, encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == text


def counts(table, label):
    of_label = [row["reading"] == "flagged" for row in table if row["label"] == label]
    return sum(of_label), len(of_label)


def shares(table):
    """Return (part, whole) of the confirmed that are flagged, of recall and of precision."""
    false, confirmed = counts(table, "confirmed")
    true, unconfirmed = counts(table, "not_confirmed")
    return (false, confirmed), (true, unconfirmed), (true, true + false)


def by_task(table, which):
    """Return the 95 % interval of a share when whole tasks are drawn again, 4,000 times."""
    tasks = {}
    for row in table:
        tasks.setdefault(row["task"], []).append(row)
    groups, draw, found = list(tasks.values()), random.Random(0), []
    while len(found) < 4000:
        again = [row for group in draw.choices(groups, k=len(groups)) for row in group]
        part, whole = shares(again)[which]
        if whole:
            found.append(part / whole)
    found.sort()
    return found[100], found[3899]


def stated(table, which):
    part, whole = shares(table)[which]
    (low, high), (from_, to) = compute_wilson_interval(part, whole), by_task(table, which)
    return (
        f"{part} of {whole} | {part / whole:.1%} | {low:.1%} to {high:.1%} "
        f"| {from_:.1%} to {to:.1%} |".replace("%", " %")
    )


def test_few_confirmed_calls_are_flagged_and_most_others_found():
    (false, confirmed), (true, unconfirmed), _ = shares(rows())
    assert (confirmed, unconfirmed) == (88, 19)
    assert false <= 0.05 * confirmed
    assert true >= 0.5 * unconfirmed


@pytest.mark.parametrize(
    ("which", "what"), [(0, "confirmed calls flagged"), (1, "recall"), (2, "precision")]
)
def test_the_page_states_the_figures(which, what):
    page = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {what} ")]
    assert line.endswith(f" | {stated(rows(), which)}")


def test_the_page_states_the_number_of_flagged_unclear_calls():
    flagged, unclear = counts(rows(), "unclear")
    page = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    assert f"flags {flagged} of the {unclear} unclear calls" in " ".join(page.split())
