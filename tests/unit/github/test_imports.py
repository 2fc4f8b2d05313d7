from __future__ import annotations

import subprocess
import sys

from tests.tables import each_row

MODULES = (
    "publish",
    "event",
    "runner_files",
    "publication",
    "dry_run",
    "activity",
    "comment",
    "check_run",
    "signals",
)


@each_row("module", MODULES)
def test_pygithub_is_imported_only_to_publish(module: str):
    code = (
        f"import sys, ci_agent_eval.github.{module}\n"
        "print({'github', 'requests', 'urllib3', 'markdown_it'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
