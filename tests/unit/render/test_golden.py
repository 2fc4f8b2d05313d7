"""Whole outputs, as a reviewer reads them."""

from __future__ import annotations

from dataclasses import replace

from ci_agent_eval.render.formats.annotations import list_annotations, render_commands
from ci_agent_eval.render.formats.brief import render_brief_json, render_brief_markdown
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.headline import render_headline
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
from tests.tables import each_row

CHECK_RUN = DetailsPage("check run", "https://github.com/acme/support-agent/runs/19")


def of_view(render, *links, **options):
    return lambda report: render(build_report_view(report, *links), **options)


def write_commands(view):
    return render_commands(list_annotations(view))


KINDS = {
    # What follows the name of the report in a file's name
    "md": of_view(render_comment, LINKS),
    "txt": of_view(render_terminal, color=False, width=100),
    "json": render_verdict,
    "ctrf.json": of_view(render_ctrf),
    "commands.txt": of_view(write_commands),
    "linked.commands.txt": of_view(write_commands, PAGE_LINKS),
    "narrow.txt": of_view(render_terminal, color=False, width=50),
    "brief.md": of_view(render_brief_markdown),
    "brief.json": of_view(render_brief_json),
    "laptop.md": of_view(render_comment, Links()),
    "check_run.md": of_view(render_comment, replace(LINKS, details=CHECK_RUN)),
    "step_summary.md": of_view(render_step_summary, LINKS),
    "check_summary.md": of_view(render_check_summary, LINKS),
}
OUTPUTS = [f"{name}.{kind}" for name in REPORTS for kind in ("md", "txt")]
OUTPUTS += [
    f"{name}.{kind}"
    for kind, names in {
        "json": "failing iterations known junit_only compared agreed below_thresholds",
        "ctrf.json": "failing regressed",
        "commands.txt": "failing hostile iterations known compared regressed hostile_baseline "
        "evaluations",
        "linked.commands.txt": "failing",
        "narrow.txt": "failing compared",
        "brief.md": "failing regressed",
        "brief.json": "failing 2-regression-answer 9-junit-only",
        "laptop.md": "failing",
        "check_run.md": "failing",
        "step_summary.md": "failing",
        "check_summary.md": "junit_only compared",
    }.items()
    for name in names.split()
]
OVERSIZE = {f"oversize.{limit}.md": limit for limit in (1_000, 4_000, 30_000)}


@each_row("file", OUTPUTS)
def test_output_is_the_golden_one(file, golden):
    name, _, kind = file.partition(".")
    built = REPORTS[name]() if name in REPORTS else build_comment_report(name)
    golden(f"render/{file}", KINDS[kind](built))
    assert len(render_headline(built)) <= 100


@each_row("file", OVERSIZE)
def test_oversize_comment_is_the_golden_one(file, golden):
    view = build_report_view(oversize(), LINKS)
    golden(f"render/{file}", render_comment(view, limit=OVERSIZE[file]))


@each_row("name", COMMENTS)
def test_comment_and_terminal_text_are_the_golden_ones(name, golden):
    report = build_comment_report(name)
    assert len(render_headline(report)) <= 100
    golden(f"comments/{name}.md", of_view(render_comment, PAGE_LINKS)(report))
    golden(f"comments/{name}.txt", of_view(render_terminal, color=False, width=80)(report))


def test_every_golden_file_is_held_against_something():
    found = {path.name for path in (GOLDEN / "render").iterdir()}
    assert found == {*OUTPUTS, *OVERSIZE}
    comments = {path.name for path in (GOLDEN / "comments").iterdir()}
    assert comments == {f"{name}.{kind}" for name in COMMENTS for kind in ("md", "txt")}
