"""One process of a run that takes ENTRIES from a rate limit; it prints the time and tokens of each.

python hammer.py FOLDER SPAN_S ENTRIES REQUESTS TOKENS [die]
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from ci_agent_eval.storage.ledger.file import LedgerFile
from ci_agent_eval.storage.ledger.sqlite_stores import SharedRateWindows, SharedWindowEntry


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(folder, span_s, entries, requests, tokens, *rest):
    file = LedgerFile(Path(folder))
    windows = SharedRateWindows(file, "provider", time.monotonic, float(span_s))
    windows.lower_limits(int(requests) or None, int(tokens) or None)
    number = 0
    say("ready")
    sys.stdin.readline()
    while number < int(entries):
        if rest and number == 5:
            with file.open_transaction() as connection:
                connection.execute("DELETE FROM requests")
                say("holds")
                os.kill(os.getpid(), signal.SIGKILL)
        taken = windows.take(10)
        if not isinstance(taken, SharedWindowEntry):
            time.sleep(max(taken, 0.001))
            continue
        number += 1
        # What it really was: now more than was guessed, now less.
        taken.amount = 15 if number % 2 else 4
        say(f"{taken.at} {taken.amount}")
        windows.correct(taken)


if __name__ == "__main__":
    main(*sys.argv[1:])
