"""Whole outputs, as a reviewer reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.render.formats.annotations import list_annotations
from ci_agent_eval.render.formats.brief import render_brief_json, render_brief_markdown
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.formats.workflow_commands import render_commands
from ci_agent_eval.render.links import DetailsPage, Links
from ci_agent_eval.render.markdown.report import (
    render_check_summary,
    render_comment,
    render_step_summary,
)
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.comment_reports import COMMENTS, build_comment_report
from tests.conftest import GOLDEN
from tests.render_reports import LINKS, PAGE_LINKS, REPORTS, oversize

CHECK_RUN = DetailsPage("check run", "https://github.com/acme/support-agent/runs/19")

OUTPUTS = {
    **{
        f"{name}.md": (name, lambda r: render_comment(build_report_view(r, LINKS)))
        for name in REPORTS
    },
    **{
        f"{name}.txt": (
            name,
            lambda r: render_terminal(build_report_view(r), color=False, width=100),
        )
        for name in REPORTS
    },
    "failing.laptop.md": ("failing", lambda r: render_comment(build_report_view(r, Links()))),
    "failing.check_run.md": (
        "failing",
        lambda r: render_comment(build_report_view(r, replace(LINKS, details=CHECK_RUN))),
    ),
    "failing.linked.commands.txt": (
        "failing",
        lambda r: render_commands(list_annotations(build_report_view(r, PAGE_LINKS))),
    ),
    "failing.step_summary.md": (
        "failing",
        lambda r: render_step_summary(build_report_view(r, LINKS)),
    ),
    "junit_only.check_summary.md": (
        "junit_only",
        lambda r: render_check_summary(build_report_view(r, LINKS)),
    ),
    "failing.narrow.txt": (
        "failing",
        lambda r: render_terminal(build_report_view(r), color=False, width=50),
    ),
    "failing.commands.txt": (
        "failing",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "hostile.commands.txt": (
        "hostile",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "failing.json": ("failing", render_verdict),
    "iterations.json": ("iterations", render_verdict),
    "iterations.commands.txt": (
        "iterations",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "failing.brief.md": ("failing", lambda r: render_brief_markdown(build_report_view(r))),
    "failing.brief.json": ("failing", lambda r: render_brief_json(build_report_view(r))),
    "regressed.brief.md": ("regressed", lambda r: render_brief_markdown(build_report_view(r))),
    "known.json": ("known", render_verdict),
    "known.commands.txt": (
        "known",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "junit_only.json": ("junit_only", render_verdict),
    "compared.json": ("compared", render_verdict),
    "compared.commands.txt": (
        "compared",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "compared.check_summary.md": (
        "compared",
        lambda r: render_check_summary(build_report_view(r, LINKS)),
    ),
    "compared.narrow.txt": (
        "compared",
        lambda r: render_terminal(build_report_view(r), color=False, width=50),
    ),
    "regressed.commands.txt": (
        "regressed",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "regressed.ctrf.json": ("regressed", lambda r: render_ctrf(build_report_view(r))),
    "hostile_baseline.commands.txt": (
        "hostile_baseline",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
    "agreed.json": ("agreed", render_verdict),
    "below_thresholds.json": ("below_thresholds", render_verdict),
    "failing.ctrf.json": ("failing", lambda r: render_ctrf(build_report_view(r))),
    "evaluations.commands.txt": (
        "evaluations",
        lambda r: render_commands(list_annotations(build_report_view(r))),
    ),
}
COMMENT_GOLDENS = {f"{name}.md": name for name in COMMENTS}
TERMINAL_GOLDENS = {f"{name}.txt": name for name in COMMENTS}
OVERSIZE = {"oversize.1000.md": 1_000, "oversize.4000.md": 4_000, "oversize.30000.md": 30_000}


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_is_the_golden_one(name, golden):
    report, render = OUTPUTS[name]
    golden(f"render/{name}", render(REPORTS[report]()))


@pytest.mark.parametrize("name", OVERSIZE)
def test_oversize_comment_is_the_golden_one(name, golden):
    golden(
        f"render/{name}", render_comment(build_report_view(oversize(), LINKS), limit=OVERSIZE[name])
    )


@pytest.mark.parametrize("file", COMMENT_GOLDENS)
def test_comment_is_the_golden_one(file, golden):
    report = build_comment_report(COMMENT_GOLDENS[file])
    golden(f"comments/{file}", render_comment(build_report_view(report, PAGE_LINKS)))


@pytest.mark.parametrize("file", TERMINAL_GOLDENS)
def test_terminal_text_is_the_golden_one(file, golden):
    report = build_comment_report(TERMINAL_GOLDENS[file])
    golden(f"comments/{file}", render_terminal(build_report_view(report), color=False, width=80))


def test_every_golden_file_is_held_against_something():
    found = {path.name for path in (GOLDEN / "render").iterdir()}
    assert found == {*OUTPUTS, *OVERSIZE}
    comments = {path.name for path in (GOLDEN / "comments").iterdir()}
    assert comments == {*COMMENT_GOLDENS, *TERMINAL_GOLDENS}
