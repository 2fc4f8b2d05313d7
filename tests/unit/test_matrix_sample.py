"""`make test-sample` chooses by the commit what it runs of the full matrix."""

from __future__ import annotations

from scripts.matrix_sample import PARTS, SECONDS, choose_parts

COMMITS = [f"{number:08x}" for number in range(len(PARTS))]


def test_the_choice_depends_on_commit_and_change_alone_and_fits_the_time():
    for commit in COMMITS:
        chosen = choose_parts(commit, ["README.md"])
        assert chosen == choose_parts(commit, ["README.md"])
        assert 0 < sum(part.seconds for part in chosen) <= SECONDS


def test_every_part_has_its_turn():
    assert {part for commit in COMMITS for part in choose_parts(commit, [])} == set(PARTS)


def test_what_the_change_can_touch_goes_first():
    chosen = choose_parts("0", ["ci_agent_eval/render/html/page.py", "README.md"])
    assert chosen[0].words == ("full", "ARGS=-q tests/integration/html")
    (framework,) = (part for part in PARTS if "NAME=strands" in part.words)
    assert framework in [part for part in PARTS if "requirements/matrix.txt" in part.touched_by]
