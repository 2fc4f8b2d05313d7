"""The line that a person is pointed at."""

from __future__ import annotations

import pytest

from ci_agent_eval.toml_lines import line_of

TEXT = """\
suite = "a"
[gate]
min_pass_rate = 2
[[quarantine]]
scenario = "a"
owner = "me"

[[ tool.ci_agent_eval.quarantine ]]
scenario = "b"
untl = "x"
[publish]
owner = 3
"""


@pytest.mark.parametrize(
    ("location", "message", "line"),
    [
        (("gate", "min_pass_rate"), "too large", 3),
        (("gate",), "must be a table", 2),
        (("quarantine", "0", "owner"), "is wrong", 6),
        (("quarantine", "1", "owner"), "is required", 8),
        (("quarantine", "1"), "unknown key 'untl'; did you mean 'until'?", 10),
        (("quarantine", "0", "until"), "is required", 4),
        (("quarantine", "7", "owner"), "is required", 6),
        (("nothing",), "at all", None),
    ],
)
def test_it_is_where_the_key_stands_or_its_entry_begins(location, message, line):
    assert line_of(TEXT, location, message) == line
