"""A command-line program for tests: prints, fails, floods, waits, or ignores being told to end."""

# ruff: noqa: T201 - what these programs print is what they are for

import json
import os
import signal
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    match words:
        case ["--help"]:
            print("usage: tool show|fail|flood|wait\n" + "x" * 10_000)
        case ["show", *rest]:
            print(json.dumps({"args": rest, "cwd": str(Path.cwd()), "env": dict(os.environ)}))
        case ["input"]:
            print(repr(sys.stdin.read()))
        case ["fail", code]:
            print("half done")
            print("something is wrong", file=sys.stderr)
            return int(code)
        case ["flood", size]:
            os.write(2, b"e" * 100)
            sys.stdout.write("0123456789" * (int(size) // 10))
        case ["wait"]:
            if os.fork() == 0:
                os.setsid()
            print(os.getpid(), flush=True)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pause()
        case ["leave"]:
            if (child := os.fork()) == 0:
                signal.pause()
            print(child)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
