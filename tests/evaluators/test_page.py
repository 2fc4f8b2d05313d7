"""The library's example in docs/checks.md, run as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/checks.md").read_text()


def test_the_example_of_the_page_passes(tmp_path):
    library = os.environ["EVALUATORS"]
    conversation = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    (example,) = re.findall(rf"^```python {library}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_page.py").write_text(f"{conversation}\n\n{example}")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--episode-report-dir=out", "test_page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    (episode,) = json.loads((tmp_path / "out/results.json").read_text())["episodes"]
    assert episode["outcome"] == "passed"
    assert len(episode["assertions"]) == example.count("check(")
    assert all(assertion["reason"] for assertion in episode["assertions"])
