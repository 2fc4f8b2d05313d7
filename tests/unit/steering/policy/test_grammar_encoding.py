"""What the bash grammar is shown of characters that its scanner cannot look up."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.shells.grammar import decode_from_grammar, encode_for_grammar
from tests.processes import run_python


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_was_shielded_comes_back(text):
    source = encode_for_grammar(text)
    assert decode_from_grammar(source) == text
    assert all(ord(character) < 256 for character in source.decode())


def test_no_character_ends_the_process(tmp_path):
    """In a process of its own: the fault is one that kills it. Its output ends with the cause."""
    every = [*range(0x80, 0x3000, 64), *range(0x3000, sys.maxunicode + 1, 4096), sys.maxunicode]
    program = (
        "from ci_agent_eval.steering.policy.detection import detect_in_text\n"
        "for before in ['{', '${', '$', '<<', '', 'a=']:\n"
        f"    for number in {every}:\n"
        "        print(repr(before), number, flush=True)\n"
        "        if not 0xD800 <= number < 0xE000: detect_in_text(before + chr(number) + '} pytest')\n"
    )
    done = run_python("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-100:] + done.stderr


def test_a_word_beyond_ascii_is_read_as_written():
    found = detect_in_text("cd häuser && PRÜFUNG=ja pytest 'tests/größe_🎈.py'")
    assert found.pytest
    assert not found.full_suite
    assert "tests/größe_🎈.py" in (found.command or "")
