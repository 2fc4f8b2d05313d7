"""Whose the files of a report folder are."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ci_agent_eval.app.report_folder import VERDICT_NAME, claim_report_folder, write_report_folder
from ci_agent_eval.errors import InputError
from ci_agent_eval.render.report_view import build_report_view
from tests.render_reports import junit_only
from tests.tables import each_row


def test_a_pipe_under_a_name_of_ours_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / VERDICT_NAME)
    with pytest.raises(InputError, match="was not written by this program"):
        claim_report_folder(tmp_path)


def test_a_link_that_leads_nowhere_is_no_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "eval-results.json").symlink_to("elsewhere.json")
    with pytest.raises(InputError, match=r"eval-results\.json: was not written by this program"):
        claim_report_folder(tmp_path)


@each_row("title", [None, "Checkout tests"])
def test_a_report_is_written_again_whatever_its_title_is(tmp_path: Path, title: str | None) -> None:
    built = replace(junit_only(), title=title)
    for _ in range(2):
        write_report_folder(built, build_report_view(built), tmp_path)
