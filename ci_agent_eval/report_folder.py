"""The report folder: what a report leaves on disk, and how a report is read from it again."""

from __future__ import annotations

from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.render.annotations import annotations as annotations_of
from ci_agent_eval.render.annotations import render_annotations
from ci_agent_eval.render.document import parse_verdict, render_verdict
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown import render_comment, render_step_summary
from ci_agent_eval.report import Report

VERDICT_NAME = "verdict.json"
COMMENT_NAME = "comment.md"
SUMMARY_NAME = "summary.md"
ANNOTATIONS_NAME = "annotations.json"


def write_report_folder(report: Report, folder: Path, links: Links) -> None:
    """Write verdict, comment, step summary and annotations; raises InputError if it cannot."""
    texts = {
        VERDICT_NAME: render_verdict(report),
        COMMENT_NAME: render_comment(report, links),
        SUMMARY_NAME: render_step_summary(report, links),
        ANNOTATIONS_NAME: render_annotations(annotations_of(report)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(
            f"{folder}: the report cannot be written ({error.strerror}); "
            "choose another --report-dir"
        ) from None


def clear_report_folder(folder: Path) -> None:
    """Remove a former report's files, so that none of them is taken for the next one's."""
    for name in (VERDICT_NAME, COMMENT_NAME, SUMMARY_NAME, ANNOTATIONS_NAME):
        (folder / name).unlink(missing_ok=True)


def load_report(folder: Path) -> Report:
    """Read the report of a folder; raises InputError naming the file and what is wrong."""
    path = folder / VERDICT_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); "
            "give the folder that `agent-eval run` or `agent-eval report` wrote"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); write it anew") from None
    return parse_verdict(text, name=str(path))
