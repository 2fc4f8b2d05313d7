"""The same report is the same bytes, whatever surrounds the process."""

from __future__ import annotations

import os
import subprocess
import sys

RENDER = """
import hashlib
from ci_agent_eval.render.formats.annotations import list_annotations
from ci_agent_eval.render.formats.workflow_commands import render_commands
from ci_agent_eval.render.formats.document import render_verdict
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.render_reports import LINKS, REPORTS

digest = hashlib.sha256()
for build in REPORTS.values():
    report = build()
    view = build_report_view(report, LINKS)
    for text in (
        render_comment(view),
        render_verdict(report),
        render_terminal(view, color=True, width=80),
        render_commands(list_annotations(view)),
    ):
        digest.update(text.encode())
print(digest.hexdigest())
"""


def digest(root, **environ):
    ran = subprocess.run(
        [sys.executable, "-c", RENDER],
        env={**os.environ, "PYTHONPATH": str(root), **environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


def test_hash_seed_locale_and_time_zone_change_nothing(pytestconfig):
    root = pytestconfig.rootpath
    usual = digest(root, PYTHONHASHSEED="0", LC_ALL="C", TZ="UTC")
    assert digest(root, PYTHONHASHSEED="7", LC_ALL="de_DE.UTF-8", TZ="Asia/Tokyo") == usual
