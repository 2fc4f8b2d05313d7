"""An MCP server that misbehaves, by its first argument; lines of JSON and nothing else.

silent: never answers. dies: ends at once. refuses: hangs up on `initialize`. garbage: answers a
call with what is no message. binary: with what is no UTF-8.
malformed: with a result of the wrong shape.
deaf: stops reading after the first call. forgets: knows no session after the first call.
moody FILE: starts only when there are two lines in the file, and adds one each time. late: offers its tool only when asked a third time.
modern: refuses `initialize` and speaks the protocol of 2026 only.
"""

# ruff: noqa: T201 - what these programs print is what they are for

import json
import os
import signal
import sys
from pathlib import Path

TOOL = {"name": "act", "description": "Act.", "inputSchema": {"type": "object"}}
INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "rogue", "version": "1"},
}

COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the protocol of 2026 asks of a result; older ones ignore it."""


def answer(request: dict, result: object) -> None:
    message = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    print(json.dumps(message), flush=True)


def refuse(request: dict, code: int, message: str) -> None:
    error = {"code": code, "message": message}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)


def act(mode: str, request: dict) -> None:
    if mode == "garbage":
        print("Starting calculation...\n{not json", flush=True)
    elif mode == "binary":
        os.write(1, b"\xff\xfe\n")
    elif mode == "malformed":
        answer(request, {"content": "not a list"})
    elif mode == "deaf":
        signal.pause()
    elif mode == "forgets":
        while request:
            refuse(request, -32600, "Session not found")
            request = json.loads(sys.stdin.readline() or "null")
    else:
        answer(request, {"content": [{"type": "text", "text": "acted"}], **COMPLETE})


def serve(mode: str) -> None:
    listed = 0
    while line := sys.stdin.readline():
        request = json.loads(line)
        match request["method"]:
            case "initialize" if mode == "modern":
                refuse(request, -32022, "Unsupported protocol version")
            case "initialize":
                answer(request, INFO)
            case "server/discover":
                able = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                answer(request, able | COMPLETE)
            case "tools/list":
                listed += 1
                tools = [] if mode == "late" and listed < 3 else [TOOL]
                answer(request, {"tools": tools, **COMPLETE})
            case "tools/call":
                act(mode, request)
            case "ping":
                answer(request, {})


def check_mood(starts: Path) -> None:
    with starts.open("a+") as file:
        file.seek(0)
        before = len(file.readlines())
        print("started", file=file)
    if before < 2:
        raise SystemExit("not in the mood")


def main() -> None:
    mode = sys.argv[1]
    print(f"rogue: {mode}", file=sys.stderr, flush=True)
    if mode == "silent":
        signal.pause()
    elif mode == "dies":
        raise SystemExit("no database at localhost:5432")
    elif mode == "refuses":
        sys.stdin.readline()
        raise SystemExit("expected something else")
    elif mode == "moody":
        check_mood(Path(sys.argv[2]))
    serve(mode)


if __name__ == "__main__":
    main()
