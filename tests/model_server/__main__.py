"""`python -m tests.model_server script.json [--port N]`: prints its address, then serves."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.model_server.server import ModelServer


def main() -> None:
    """Serve the script until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m tests.model_server")
    parser.add_argument("script", type=Path, help="a JSON list of steps, or lists by conversation")
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    server = ModelServer(json.loads(asked.script.read_text("utf-8")), port=asked.port)
    sys.stdout.write(json.dumps({"base_url": server.base_url}) + "\n")
    sys.stdout.flush()
    server.serve()


if __name__ == "__main__":
    main()
