"""The report folder: writing a report's files, and loading the report from them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.evaluation import EvaluationReport
from ci_agent_eval.contract.results import (
    CONFIRMATION_NAME,
    EVAL_RESULTS_NAME,
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
    Confirmation,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.formats.annotations import list_annotations as annotations_of
from ci_agent_eval.render.formats.annotations import render_annotations
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.html import PAGE_BEGINNING
from ci_agent_eval.render.markdown.report import render_comment, render_step_summary
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.storage.regular_file import open_regular, replace_file
from ci_agent_eval.storage.run_folder import claim_evaluation_file, write_evaluation_file

if TYPE_CHECKING:
    from ci_agent_eval.app.installed_formats import InstalledFormat

VERDICT_NAME = "verdict.json"
COMMENT_NAME = "comment.md"
SUMMARY_NAME = "summary.md"
ANNOTATIONS_NAME = "annotations.json"
PAGE_NAME = "report.html"
CTRF_NAME = "ctrf.json"
CTRF_BEGINNING = '{\n  "generatedBy": "agent-eval"'

_OURS = {
    RESULTS_NAME: ('{"schema_version":',),
    VERDICT_NAME: ('{\n  "commit"', '{\n  "conclusion"'),
    COMMENT_NAME: ("<!-- agent-eval suite=",),
    # The headings are of former versions, which wrote no mark.
    SUMMARY_NAME: ("<!-- agent-eval suite=", "### ✅ Agent evals", "### ❌ Agent evals"),
    ANNOTATIONS_NAME: ("[\n", "[]"),
    PAGE_NAME: (PAGE_BEGINNING,),
    CTRF_NAME: (CTRF_BEGINNING,),
    CONFIRMATION_NAME: ('{"base_commit":',),
}
"""The beginning of each file that this program writes."""

_RUN_FILES = (EVAL_RESULTS_NAME, SESSION_NAME, JUNIT_NAME)
_MAX_BEGINNING = 400
"""Bytes of a file that are read to recognize it."""


def _render_ctrf(view: ReportView) -> str:
    from ci_agent_eval.render.formats.ctrf import render_ctrf  # noqa: PLC0415 - optional format

    return render_ctrf(view)


_FORMATS: dict[str, tuple[str, Callable[[ReportView], str]]] = {
    "ctrf": (CTRF_NAME, _render_ctrf),
}
"""File name and renderer of each optional format."""


def _load_formats(formats: Iterable[str]) -> Sequence[InstalledFormat]:
    """Load the formats of installed packages. Raises InputError."""
    reserved = {*_OURS, *_RUN_FILES}
    found: list[InstalledFormat] = []
    for name in dict.fromkeys(formats):
        if name not in _FORMATS:
            from ci_agent_eval.app.installed_formats import load_format  # noqa: PLC0415 - rarely needed

            found.append(load_format(name, frozenset(reserved)))
            reserved.add(found[-1].file_name)
    return found


def claim_report_folder(folder: Path, installed: Iterable[InstalledFormat] = ()) -> None:
    """Raise InputError if a foreign file would be overwritten; changes nothing."""
    added = {one.file_name: (one.prefix,) for one in installed}
    for name, beginnings in (_OURS | added).items():
        if not _begins_with(folder / name, beginnings):
            raise InputError(
                f"{folder / name}: was not written by this program and would be overwritten; "
                "move it, or choose another --report-dir"
            )
    claim_evaluation_file(folder / EVAL_RESULTS_NAME, advice="choose another --report-dir")


def _begins_with(path: Path, beginnings: tuple[str, ...]) -> bool:
    """Say whether a file has one of the beginnings, or does not exist."""
    try:
        with open_regular(path, follow=True) as file:
            first = file.read(_MAX_BEGINNING).decode("utf-8", "replace")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return first.startswith(beginnings)


def write_report_folder(
    report: Report, view: ReportView, folder: Path, formats: Collection[str] = ()
) -> None:
    """Write verdict, comment, step summary, annotations and the optional formats.

    Earlier files of our formats that are not requested are deleted. Nothing is written if a
    format of an installed package fails. Raises InputError on failure.
    """
    installed, verdict = _load_formats(formats), render_verdict(report)
    claim_report_folder(folder, installed)
    texts = {
        VERDICT_NAME: verdict,
        COMMENT_NAME: render_comment(view),
        SUMMARY_NAME: render_step_summary(view),
        ANNOTATIONS_NAME: render_annotations(annotations_of(view)),
        **{one.file_name: one.render(verdict) for one in installed},
        **{name: render(view) for key, (name, render) in _FORMATS.items() if key in formats},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        for name, _ in _FORMATS.values():
            if name not in texts:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise _write_error(folder, error) from None


def write_page(folder: Path, pieces: Iterable[str]) -> None:
    """Write `report.html` from its pieces, atomically; raises InputError on failure."""
    claim_report_folder(folder)
    try:
        with replace_file(folder / PAGE_NAME) as file:
            file.writelines(pieces)
    except OSError as error:
        raise _write_error(folder, error) from None


def write_confirmation(folder: Path, found: Confirmation) -> None:
    """Write `confirmation.json`, atomically; raises InputError on failure."""
    claim_report_folder(folder)
    try:
        with replace_file(folder / CONFIRMATION_NAME) as file:
            file.write(canonical_json(found) + "\n")
    except OSError as error:
        raise _write_error(folder, error) from None


def write_evaluation(folder: Path, found: EvaluationReport | None) -> None:
    """Write `eval-results.json`, or delete an earlier one; raises InputError on failure."""
    claim_report_folder(folder)
    path = folder / EVAL_RESULTS_NAME
    try:
        if found is None:
            path.unlink(missing_ok=True)
        else:
            write_evaluation_file(path, found)
    except OSError as error:
        raise _write_error(folder, error) from None


def _write_error(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder}: the report cannot be written ({error.strerror}); choose another --report-dir"
    )


def clear_report_folder(folder: Path, formats: Iterable[str] = ()) -> None:
    """Delete an earlier report's files, so that they are not read as the next one's.

    `formats` are those of the next report. Raises InputError if one cannot be loaded, or if a
    foreign file would be overwritten; then nothing is deleted.
    """
    installed = _load_formats(formats)
    claim_report_folder(folder, installed)
    texts = (VERDICT_NAME, COMMENT_NAME, SUMMARY_NAME, ANNOTATIONS_NAME)
    others = [name for name, _ in _FORMATS.values()]
    others += [one.file_name for one in installed]
    for name in (*texts, PAGE_NAME, EVAL_RESULTS_NAME, CONFIRMATION_NAME, *others):
        (folder / name).unlink(missing_ok=True)


def require_publishable(report: Report, commit: str, folder: Path) -> None:
    """Raise InputError if the folder's report cannot be published for a commit.

    It is of another commit, or of a restricted run that no reason of the verdict names.
    """
    path = folder / VERDICT_NAME
    if report.commit not in {None, commit}:
        raise InputError(
            f"{path}: is about commit {report.commit}, but this run is about "
            f"{commit}; run `agent-eval report` anew"
        )
    is_judged = any(reason.kind == "partial" for reason in report.verdict.reasons)
    if report.summary.restrictions and not is_judged:
        arguments = ", ".join(report.summary.restrictions)
        raise InputError(
            f"{path}: this run covered only part of the suite ({arguments}); a required check "
            "needs a full run: remove these options"
        )


def load_report(folder: Path) -> Report:
    """Load a folder's report; raises InputError with the file and the problem."""
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


def find_files_folder(report: Report, paths: Sequence[str] = ()) -> str:
    """Return the path from the working folder to the folder of the report's files.

    Files are named from the repository or pytest's rootdir, which may be above the working folder
    or, for the suite at `paths`, below it. Empty: it is the working folder, or it is unknown.
    """
    here = Path.cwd()
    file = next((one.file for one in report.summary.scenarios if one.file), None)
    starts = (here, *(here / path.partition("::")[0] for path in paths))
    for folder in (folder for start in starts for folder in (start, *start.parents)):
        if file is not None and os.path.isfile(folder / file):  # noqa: PTH113 - False for any text
            return "" if folder == here else os.path.relpath(folder, here)
    return ""


BASELINE_NAME = "evals/results.json"


def copy_to_baseline(folder: Path, report: Report, root: Path) -> str:
    """Copy the results of a whole run, and return how to compare with them; or why they are not.

    Raises InputError if the file cannot be written.
    """
    summary = report.summary
    is_cut = summary.shard or summary.restrictions or summary.left_out
    if is_cut or not summary.tally.judged or any(one.blocking for one in summary.findings):
        return "No baseline is saved: only a part of the suite was judged."
    path = root / BASELINE_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / RESULTS_NAME, path)
    except OSError as error:
        raise InputError(f"the baseline {BASELINE_NAME} cannot be written: {error}") from error
    return (
        f"Baseline: {BASELINE_NAME}. Commit it, and compare with "
        f"--baseline git:origin/main:{BASELINE_NAME} (or upload the report folder in the workflow "
        "of the default branch, and compare with --baseline artifact)."
    )
