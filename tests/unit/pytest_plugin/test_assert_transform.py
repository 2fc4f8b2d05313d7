"""The pass over an evaluation's syntax tree, held against a model of what it is to do."""

from __future__ import annotations

import ast
import contextlib
import io
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.pytest_plugin.evaluation.assert_recorder import AssertRecorder
from ci_agent_eval.pytest_plugin.evaluation.assert_transform import RECORDER, record_asserts
from ci_agent_eval.pytest_plugin.evaluation.source_text import SourceText, join_source_lines
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)

ROOT = Path(__file__).parents[3]

CATCHING = {
    "AssertionError": True,
    "Exception": True,
    "(ValueError, AssertionError)": True,
    "ValueError": False,
    "(KeyError, ValueError)": False,
}
"""Exception types as they are written, and whether they catch a failed assert."""


@dataclass
class Written:
    """A block of statements, as an evaluation has them and as the model has them."""

    lines: list[str] = field(default_factory=list)
    model: list[str] = field(default_factory=list)

    def both(self, line: str, *blocks: Written) -> Written:
        for own, theirs in ((self.lines, "lines"), (self.model, "model")):
            own.append(line)
            for block in blocks:
                own.extend(indent("\n".join(getattr(block, theirs)), "    ").split("\n"))
        return self


@st.composite
def blocks(draw, depth: int = 3, handled: bool = False) -> Written:
    """Write a block; `handled` says whether a failed assert of it is caught in its function."""
    written = Written()
    for _ in range(draw(st.integers(1, 3))):
        statement(draw, written, depth, handled)
    return written


def statement(draw, written: Written, depth: int, handled: bool) -> None:  # noqa: C901 - a table
    kinds = ["assert", "assert", "note", "raise"]
    if depth:
        kinds += ["if", "for", "try", "finally", "suppress", "call", "match", "class"]
    kind, mark = draw(st.sampled_from(kinds)), draw(st.integers(0, 99))
    inner = blocks(depth - 1, handled)
    match kind:
        case "assert":
            value = draw(st.sampled_from(["yes", "no", "no", "value_error", "assertion_error"]))
            written.lines.append(f"assert {value}({mark}), note('said {mark}')")
            written.model.append(f"model(lambda: {value}({mark}), 'said {mark}', {handled})")
        case "note":
            written.both(f"note({mark})")
        case "raise":
            written.both(f"if {mark} == 7: raise KeyError")
        case "if":
            written.both(f"if {mark} % 2:", draw(inner)).both("else:", draw(inner))
        case "for":
            written.both("for _ in range(2):", draw(inner)).both("else:", draw(inner))
        case "try":
            types = draw(st.sampled_from(list(CATCHING)))
            caught = draw(blocks(depth - 1, handled or CATCHING[types]))
            written.both("try:", caught).both(f"except {types} as error:", draw(inner))
            written.both("else:", draw(inner))
        case "finally":
            written.both("try:", draw(inner)).both("finally:", draw(inner))
        case "suppress":
            types = draw(st.sampled_from(list(CATCHING)))
            body = draw(blocks(depth - 1, handled or CATCHING[types]))
            written.both(f"with forgive({types.strip('()')}):", body)
        case "call":
            written.both(f"def inner_{mark}():", draw(blocks(depth - 1, False)))
            written.both(f"inner_{mark}()")
        case "match":
            written.both(f"match {mark % 2}:\n    case 0:\n        pass\n    case _:\n        pass")
            written.both(f"if {mark}:", draw(inner))
        case "class":
            written.both("class Body:", draw(inner))


def ran(tree: ast.Module) -> tuple[list[object], str]:
    """Run a program; return what it noted and recorded, and how it ended."""
    log: list[object] = []

    def note(value):
        log.append(value)
        return str(value)

    def fails(kind, value):
        raise kind(value)

    def model(value, message, handled):
        if value():
            log.append("passed")
        else:
            note(message)
            if handled:
                raise AssertionError(message)
            log.append("failed")

    names = {
        "note": note,
        "model": model,
        "forgive": contextlib.suppress,
        "yes": lambda value: note(value) and True,
        "no": lambda value: not note(value),
        "value_error": lambda value: fails(ValueError, value),
        "assertion_error": lambda value: fails(AssertionError, value),
        RECORDER: Told(log),
    }
    try:
        exec(compile(tree, "program", "exec"), names)
        names["test"]()
    except Exception as error:  # noqa: BLE001 - whichever it is, both are to end so
        return log, repr(error)
    return log, "returned"


@dataclass(frozen=True)
class Told:
    """Stands for `Asserts`; notes what is told in the program's own log."""

    log: list[object]
    inner = AssertRecorder("program.py")
    Failed = AssertRecorder.Failed
    Everything = AssertRecorder.Everything

    def record_pass(self, line, name, reason):
        if self.inner.is_recording():
            self.log.append("passed")

    def record_failure(self, line, name, error, catching):
        was_kept = self.inner.record_failure(line, name, error, catching)
        if was_kept:
            self.log.append("failed")
        return was_kept


@contextlib.contextmanager
def evaluation():
    activate_episode(RunningEpisode("evaluation"))
    try:
        yield
    finally:
        deactivate_episode()


def program(lines: list[str]) -> str:
    return "from contextlib import suppress as forgive\ndef test():\n" + indent(
        "\n".join(lines), "    "
    )


def transformed(source: str) -> ast.Module:
    tree = ast.parse(source)
    record_asserts(tree, source)
    return tree


@given(blocks())
def test_an_evaluation_does_what_the_model_does(written):
    source = program(written.lines)
    with evaluation():
        found = ran(transformed(source))
    assert found == ran(ast.parse(program(written.model)))


@given(blocks())
def test_outside_of_one_it_does_what_python_does(written):
    source = program(written.lines)
    assert ran(transformed(source)) == ran(ast.parse(source))


@given(blocks())
def test_no_other_line_of_the_file_seems_to_run(written):
    source = program(written.lines)

    def lines(tree):
        return {node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")}

    assert lines(transformed(source)) == lines(ast.parse(source))


def test_an_assert_keeps_its_line_whatever_catches_it():
    source = (
        "def test():\n    try:\n        assert 0\n    except (\n        ValueError\n    ): pass\n"
    )
    (told,) = [
        n for n in ast.walk(transformed(source)) if isinstance(n, ast.ExceptHandler) and n.name
    ]
    assert {n.lineno for n in ast.walk(told) if hasattr(n, "lineno")} == {3}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted(Path(__file__).parents[2].rglob("*.py"))
        if "node_modules" not in path.parts
    ],
    ids=lambda path: path.name,
)
def test_real_files_still_compile(path):
    source = path.read_text(encoding="utf-8")
    tree = transformed(source)
    compile(tree, str(path), "exec")
    wrapped = [
        n for n in ast.walk(tree) if isinstance(n, ast.Try) and isinstance(n.body[0], ast.Assert)
    ]
    assert all(isinstance(n.handlers[0].type, ast.Attribute) for n in wrapped if len(n.body) == 1)


def test_asserts_outside_of_functions_stay():
    source = "assert 1\nclass A:\n    assert 2\n    if 1:\n        assert 3\n    def f(self):\n        assert 4\n"
    tree = transformed(source)
    assert [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Try)] == [7]


EXPRESSIONS = [
    "a == b",
    "not (a or b) and c.d",
    "f(a, *b, c=[1, 2], **{'x': 3})['k'].m()",
    "'#no' in {1: 'a  b', 2: f'{x!r:>{w}}'}",
    "[n for n in range(3) if n] == [1, 2]",
    "(lambda q, *r: q)(1) if a else b",
    "x < y <= z != -w",
    "(await call(a))[1:2, ...]",
]


@st.composite
def laid_out(draw) -> tuple[str, str]:
    """Give an expression, and its text with line breaks and comments between its tokens."""
    text = draw(st.sampled_from(EXPRESSIONS))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    result, last, depth = "", 0, 0
    for token in tokens:
        if token.type in {tokenize.NEWLINE, tokenize.ENDMARKER}:
            break
        # An f-string's parts, of Python 3.12 and later, are one token of its text.
        depth += {"FSTRING_START": 1, "FSTRING_END": -1}.get(tokenize.tok_name[token.type], 0)
        result += text[last : token.end[1]]
        last = token.end[1]
        if not depth:
            result += draw(
                st.sampled_from(["", "", " ", "\n", "\n    ", " # 'why\n", "\n\n  # (\n"])
            )
    return text, result


@given(laid_out())
def test_a_text_on_one_line_is_the_same_expression(pair):
    text, result = pair
    line = join_source_lines(result.strip()) if "\n" in result.strip() else result.strip()
    assert "\n" not in line
    expected = ast.dump(ast.parse(f"async def f(): ({text})"))
    assert ast.dump(ast.parse(f"async def f(): ({line}\n)")) == expected


@given(laid_out())
def test_the_text_of_a_node_is_that_of_its_place(pair):
    text, result = pair
    source = f'"""ä"""\nasync def f():\n    "é"; assert (\n{result}\n), "ß"\n'
    tree = ast.parse(source)
    (found,) = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    said = SourceText(source).get_text(found.test)
    expected = ast.dump(ast.parse(f"async def f(): ({text})").body[0].body[0].value)
    assert ast.dump(ast.parse(f"async def f(): ({said})").body[0].body[0].value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nand b", "a and b"),
        ("f(\n    a,\n    b,\n)", "f(a, b,)"),
        ("a  # why\n    and b", "a and b"),
        ("a \\\n    and b", "a and b"),
        ("x\n    .y\n    .z()", "x.y.z()"),
        ("{\n    '#': 1,  # one\n}", "{'#': 1,}"),
        ('"""a\n  b # no comment\n"""', '"""a b # no comment """'),
    ],
)
def test_layout_goes(text, expected):
    assert join_source_lines(text) == expected
