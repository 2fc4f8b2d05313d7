"""What a sink keeps, and what it lets through."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from contextvars import copy_context

from ci_agent_eval.pytest_plugin.concurrency.output import (
    OutputRouting,
    OutputSink,
    is_holding,
    set_sink,
    use_sink,
)


def in_a_stream_of_its_own(test: Callable[[io.BytesIO], None]) -> Callable[[], None]:
    """Run a test with its own stream in the place of the process's; it is given the bytes.

    No fixture: pytest puts its own streams there after a setup.
    """

    def run() -> None:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with redirect_stdout(stream):
            test(stream.buffer)  # type: ignore[arg-type]  # those that it was made with

    run.__name__ = test.__name__
    return run


@in_a_stream_of_its_own
def test_what_is_kept_is_told_by_phase_and_in_order(stdout):
    sink = OutputSink()
    with OutputRouting().enable():
        with use_sink(sink):
            print("set up")  # noqa: T201 - what is kept
            sink.phase = "call"
            print("called")  # noqa: T201 - as above
            sys.stdout.buffer.write("\u00fc\n".encode())
            sys.stdout.writelines(["one\n", "two\n"])
        print("another")  # noqa: T201 - as above
    assert stdout.getvalue() == b"another\n"
    sink.replay("setup")
    assert stdout.getvalue() == b"another\nset up\n"
    sink.replay("call")
    assert stdout.getvalue().decode() == "another\nset up\ncalled\n\u00fc\none\ntwo\n"
    sink.replay("call")
    assert stdout.getvalue().count(b"called") == 1


@in_a_stream_of_its_own
def test_from_its_turn_on_nothing_is_kept(stdout):
    sink = OutputSink()
    with OutputRouting().enable(), use_sink(sink):
        sink.replay("setup")
        assert is_holding()
        sink.replay("call")
        assert not is_holding()
        print("at once")  # noqa: T201 - what is not kept
        assert stdout.getvalue() == b"at once\n"


@in_a_stream_of_its_own
def test_the_stream_is_back_when_the_outermost_ends(stdout):
    routing, before = OutputRouting(), sys.stdout
    with routing.enable():
        with routing.enable():
            assert sys.stdout is not before
        assert sys.stdout is not before
    assert sys.stdout is before


@in_a_stream_of_its_own
def test_a_context_keeps_for_itself(stdout):
    one, other = OutputSink(), OutputSink()
    contexts = []
    for sink in (one, other):
        context = copy_context()
        context.run(set_sink, sink)
        contexts.append(context)
    with OutputRouting().enable():
        for number, context in enumerate(contexts):
            context.run(print, number)
    assert stdout.getvalue() == b""
    other.replay("setup")
    assert stdout.getvalue() == b"1\n"
    assert not is_holding()
