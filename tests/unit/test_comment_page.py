"""docs/comment.md says what the program does."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import get_args

from ci_agent_eval.config.options import OPTIONS
from ci_agent_eval.config.settings import ACKNOWLEDGED_NAME, load_settings, load_waivers
from ci_agent_eval.github.publication import CommentMode

ROOT = Path(__file__).parents[2]
COMMENT = (ROOT / "docs/comment.md").read_text()


def test_every_mode_has_its_row():
    (option,) = [option for option in OPTIONS if option.name == "comment"]
    rows = re.findall(r"^\| `([\w-]+)` \|", COMMENT, re.MULTILINE)
    assert tuple(rows) == option.choices == get_args(CommentMode)


def test_the_agreements_of_the_page_are_read(tmp_path):
    acknowledged, quarantine = re.findall(r"^```toml\n(.*?)^```", COMMENT, re.DOTALL | re.MULTILINE)
    (tmp_path / "agent-eval.toml").write_text(quarantine)
    (tmp_path / ACKNOWLEDGED_NAME).write_text(acknowledged)
    settings = load_settings(root=tmp_path, environ={}, flags={})
    last = dt.date(2026, 1, 31)
    for day, expired in ((last, False), (last + dt.timedelta(1), True)):
        agreed = load_waivers(tmp_path, settings, day)
        assert [one.expired for one in (*agreed.quarantine, *agreed.acknowledged)] == [expired] * 2
    assert agreed.quarantine[0].covers("refund_over_limit", "gpt-5")
