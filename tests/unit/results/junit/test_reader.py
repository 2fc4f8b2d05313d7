from __future__ import annotations

import io
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.results.junit.failure_places import find_message
from ci_agent_eval.results.junit.reader import JUnitFile, read_junit
from tests.builders import junit_case, junit_xml
from tests.tables import each_row


def read(document: str | bytes, **kwargs) -> JUnitFile:
    data = document.encode() if isinstance(document, str) else document
    return read_junit(io.BytesIO(data), **kwargs)


def tally(file: JUnitFile) -> tuple[int, int, int, int]:
    counts = file.counts
    return counts.passed, counts.failed, counts.error, counts.skipped


@each_row(
    "declaration",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
    ],
    ids=["expanding", "file", "network"],
)
def test_entities_are_refused(declaration: str) -> None:
    # One that was expanded would not come to an end within the time limit of every test.
    file = read(f"<!DOCTYPE t [{declaration}]><testsuite><testcase name='&a;'/></testsuite>")
    assert "it declares" in (file.end.problem or "")


def test_huge_texts_are_cut_and_captured_output_is_not_kept() -> None:
    line = "x" * 99 + "\n"
    body = f"<system-out>{line * 120_000}</system-out><failure>{line * 120_000}</failure>"
    document = io.BytesIO(junit_xml(junit_case(body)).encode())
    tracemalloc.start()
    file = read_junit(document)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "cut after 8000 characters" in (file.failing[0].detail or "")
    assert peak < 3_000_000  # each of the texts has 12,000,000 characters


def test_a_long_token_is_read_in_ever_larger_chunks_so_that_time_stays_linear() -> None:
    # Older expat scans an unfinished token again with every chunk it is given.
    sizes: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size or 0)
            return super().read(size)

    document = Counting(b'<testsuite name="' + b"y" * 20_000_000 + b'"><testcase/></testsuite>')
    assert tally(read_junit(document)) == (1, 0, 0, 0)
    assert len(sizes) < 20


MESSAGES = [
    # (name, message, text, what a person would quote)
    (
        "Fails",
        "g.cc:3\nExpected equality of these values:\n  1 + 1\n    Which is: 2\n  3",
        None,
        "Expected equality of these values: 1 + 1 Which is: 2 3",
    ),
    (
        "src/a.test.ts",
        "Cannot find module './x' imported from /w/src/a.test.ts",
        None,
        "Cannot find module './x' imported from /w/src/a.test.ts",
    ),
    ("NaN", "expected 3 to be NaN", "AssertionError: x", "expected 3 to be NaN"),
    (
        "test_a",
        "test failure",
        'Traceback (most recent call last):\n  File "t.py", line 4\n    x\nAssertionError: 1 != 2',
        "AssertionError: 1 != 2",
    ),
    (
        "test_a",
        None,
        "Traceback (most recent call last):\n  a\nKeyError: 1\n\nDuring handling …:\n\nTraceback (most recent call last):\n  b\nValueError: last",
        "ValueError: last",
    ),
    (
        "TestFail",
        "Failed",
        "=== RUN   TestFail\n    a_test.go:5: connecting\n    a_test.go:6: Add = -1, want 3\n--- FAIL: TestFail (0.00s)\n",
        "Add = -1, want 3",
    ),
    (
        "a.test.js",
        None,
        "  \u25cf Test suite failed to run\n\n    Cannot find module 'x'\n",
        "Cannot find module 'x'",
    ),
    ("pays", None, "(in test file pay.bats, line 3)\n  `false' failed", "`false' failed"),
    ("red", "\ufffd[31mred\ufffd[39m is not blue", None, "red is not blue"),
    ("pays", "None", "Failing step: Then it pays", "Failing step: Then it pays"),
    ("pays", "cart.spec.ts:3:1 \u203a pays", "Error: no", "Error: no"),
    ("pays", "failed", None, "failed"),
]


@each_row(("name", "message", "text", "expected"), MESSAGES)
def test_the_message_is_the_line_that_a_person_would_quote(name, message, text, expected) -> None:
    assert find_message(name, message, text) == expected


markup = st.sampled_from(
    ["<testsuites>", "</testsuites>", "<testsuite tests='2'>", "</testsuite>", "<testcase>",
     "<testcase status='failed'/>", "</testcase>", "<failure>", "</failure>", "<skipped/>", "x",
     "<property name='agent_eval.nodeid' value='x'/>", "<flakyError/>", "&amp;", "\x00", "<a:b/>"]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=300), st.lists(markup).map(lambda m: "".join(m).encode())))
def test_no_bytes_raise(data: bytes) -> None:
    file = read(b"<testsuites>" + data)
    assert file.counts.cases >= len(file.failing)
