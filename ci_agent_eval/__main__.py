"""`agent-eval`, and `python -m ci_agent_eval`.

`steer hook` bypasses click, because coding agents wait for it.
"""

from __future__ import annotations

import gc
import os
import sys

_HOOK = ["steer", "hook"]
_HELP = {"-h", "--help"}


def main() -> int:
    """Run the command line and return the exit code."""
    words = sys.argv[1:]
    if words[:2] == _HOOK and not _HELP.intersection(words):
        from ci_agent_eval.steering.hook.command import main as hook  # noqa: PLC0415 - see above

        status = hook(words[2:])
        # The answer is flushed. Python's clean-up would take a tenth of the time.
        os._exit(status)
    # Imports and episodes create few cycles; collecting them took a seventh of a report's time.
    # Importing for a small report creates over 50,000 objects that stay.
    gc.set_threshold(200_000, 20, 20)
    from ci_agent_eval.app.cli import main as cli  # noqa: PLC0415 - see above

    status = cli()
    # Skip the interpreter's collection at exit.
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())
