"""Events of coding agents, and the answers of the hook to them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.steering.in_process import run_steer

EVENTS = json.loads(Path(__file__).with_name("hook_events.json").read_text())
"""Events as agents document them, with both answers and their sources."""

ENABLE = "--enable-pytest-full-suite-steering"
CLAUDE = EVENTS["claude-code-pre-tool-use"]["event"]


def run_hook(folder, event, *options, **environ):
    """Run the hook in a folder, which also has the memory of sessions."""
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    environ = {"XDG_STATE_HOME": str(folder / "state"), **environ}
    return run_steer(folder, "hook", *options, given=given, **environ)


def decided(done):
    """The answer of a run that must have gone well."""
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return json.loads(done.stdout) if done.stdout else ""


def is_denied(done):
    return decided(done) != ""


def renamed(event, command):
    return json.loads(json.dumps(event).replace("pytest", command))


def sent_again(event):
    """The same call in the model's next answer."""
    return event | {key: f"{event[key]}1" for key in ("answer_id", "timestamp") if key in event}
