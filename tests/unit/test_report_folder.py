"""Whose the files of a report folder are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.report_folder import VERDICT_NAME, claim_report_folder


def test_a_pipe_under_a_name_of_ours_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / VERDICT_NAME)
    with pytest.raises(InputError, match="was not written by this program"):
        claim_report_folder(tmp_path)
