"""The line that a person is pointed at."""

from __future__ import annotations

import pytest

from ci_agent_eval.config.toml_lines import find_line

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
    ("location", "unknown", "line"),
    [
        (("gate", "min_pass_rate"), None, 3),
        (("gate",), None, 2),
        (("quarantine", "0", "owner"), None, 6),
        (("quarantine", "1", "owner"), None, 8),
        (("quarantine", "1"), "untl", 10),
        (("quarantine", "0", "until"), None, 4),
        (("quarantine", "7", "owner"), None, 6),
        (("nothing",), None, None),
    ],
)
def test_it_is_where_the_key_stands_or_its_entry_begins(location, unknown, line):
    assert find_line(TEXT, location, unknown) == line
