"""Child programs and tool servers."""

import asyncio
import json
import subprocess
import sys

from shopdesk.prompts import ROOT


def convert_currency(currency: str) -> str:
    """Convert to a currency."""
    script = str(ROOT / "scripts/rates.py")
    command = [sys.executable, "-S", script, currency]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def print_label(item: str) -> str:
    """Print the label of an item."""
    command = ["sh", "scripts/label.sh", item]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


async def run_badge():
    process = await asyncio.create_subprocess_exec(
        "sh", str(ROOT / "data/badge.sh"), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip()


class Warehouse:
    """A client of the tool server."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-S", str(ROOT / "servers/warehouse.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask_server(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop_server(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
