from __future__ import annotations

import subprocess
import sys

MODULES = (
    *("publish", "event", "runner_files", "publication", "dry_run"),
    *("activity", "comment", "check_run", "signals"),
)


def test_pygithub_is_imported_only_to_publish():
    code = "import sys\n" + "".join(f"import ci_agent_eval.github.{name}\n" for name in MODULES)
    code += "print({'github', 'requests', 'urllib3', 'markdown_it'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
