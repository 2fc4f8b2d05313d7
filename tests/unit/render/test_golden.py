"""Whole outputs, as a reviewer reads them."""

from __future__ import annotations

from dataclasses import replace

from ci_agent_eval.render.formats.annotations import list_annotations, render_commands
from ci_agent_eval.render.formats.brief import render_brief_json, render_brief_markdown
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
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
    # What follows the name of the report in a heading
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
FILES = {
    # The golden file of each kind, and the reports that are shown in it
    "markdown.md": {
        "md": [*REPORTS],
        "brief.md": ["failing", "regressed"],
        "laptop.md": ["failing"],
        "check_run.md": ["failing"],
        "step_summary.md": ["failing"],
        "check_summary.md": ["junit_only", "compared"],
    },
    "terminal.txt": {
        "txt": [*REPORTS],
        "narrow.txt": ["failing", "compared"],
        "commands.txt": [
            *("failing", "hostile", "iterations", "known", "compared", "regressed"),
            *("hostile_baseline", "evaluations"),
        ],
        "linked.commands.txt": ["failing"],
    },
    "json.txt": {
        "json": [
            *("failing", "iterations", "known", "junit_only", "compared", "agreed"),
            "below_thresholds",
        ],
        "ctrf.json": ["failing", "regressed"],
        "brief.json": ["failing", "2-regression-answer", "9-junit-only"],
    },
}


@each_row("file", FILES)
def test_outputs_are_the_golden_ones(file, golden):
    outputs = {}
    for kind, names in FILES[file].items():
        for name in names:
            built = REPORTS[name]() if name in REPORTS else build_comment_report(name)
            outputs[f"{name}.{kind}"] = KINDS[kind](built)
            assert len(render_headline(built)) <= 100
    golden(f"render/{file}", outputs)


def test_oversize_comments_are_the_golden_ones(golden):
    view = build_report_view(oversize(), LINKS)
    limits = (1_000, 4_000, 30_000)
    golden(
        "render/oversize.md",
        {f"at most {limit}": render_comment(view, limit=limit) for limit in limits},
    )


def test_comments_and_terminal_texts_are_the_golden_ones(golden):
    reports = {name: build_comment_report(name) for name in COMMENTS}
    assert all(len(render_headline(report)) <= 100 for report in reports.values())
    for file, render in (
        ("markdown.md", of_view(render_comment, PAGE_LINKS)),
        ("terminal.txt", of_view(render_terminal, color=False, width=80)),
    ):
        golden(f"comments/{file}", {name: render(report) for name, report in reports.items()})


@each_row("name", [*REPORTS, *COMMENTS])
def test_a_comment_can_be_written_again_from_the_verdict(name):
    built = REPORTS[name]() if name in REPORTS else build_comment_report(name)
    read = parse_verdict(render_verdict(built))
    assert KINDS["md"](read) == KINDS["md"](built)


def test_every_golden_file_is_held_against_something():
    assert {path.name for path in (GOLDEN / "render").iterdir()} == {*FILES, "oversize.md"}
