"""docs/state.md: its code is one suite, and its diff is the one that the report shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.processes import run_agent_eval

PAGE = (Path(__file__).parents[2] / "docs/state.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CODE = "\n\n".join(BLOCKS)
DIFF = re.findall(r"^```diff\n.*?^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_passes(tmp_path):
    (tmp_path / "test_page.py").write_text(CODE)
    done = run_agent_eval("run", "test_page.py", "--", "-W", "error", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    results = json.loads((tmp_path / "agent-eval-report/results.json").read_text())
    changed = {
        episode["nodeid"].rpartition("::")[2]: [len(s["changes"]) for s in episode["states"]]
        for episode in results["episodes"]
    }
    assert changed == {"test_refund": [2], "test_reference": [2], "test_function": [1, 1]}


def test_the_diff_of_the_page_is_that_of_the_report(tmp_path):
    greedy = BLOCKS[0].replace(
        "refund(shop, 1001)  # your agent",
        "refund(shop, 1001); refund_all(shop)",
    )
    assert greedy != BLOCKS[0]
    greedy += """
def refund_all(path):
    with closing(sqlite3.connect(path)) as shop, shop:
        shop.execute("update orders set status = 'refunded'")
"""
    (tmp_path / "test_page.py").write_text(greedy)
    done = run_agent_eval("run", "test_page.py", cwd=tmp_path)
    assert done.returncode == 1
    comment = (tmp_path / "agent-eval-report/comment.md").read_text()
    assert [block for block in DIFF if block in comment] == DIFF
    (reason,) = re.findall(r"^first difference, such as `(.*?)`,", PAGE, re.MULTILINE | re.DOTALL)
    assert " ".join(reason.split()) in comment
