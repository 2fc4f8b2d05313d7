"""A tool server: one JSON request a line, one JSON answer a line."""

import json
import sys
from pathlib import Path

SCHEMA = json.loads((Path(__file__).parent / "warehouse_schema.json").read_text())
SHELVES = {"lamp": "A1", "fern": "G7"}

for line in sys.stdin:
    request = json.loads(line)
    answer = SCHEMA if request["method"] == "list" else SHELVES.get(request["item"], "none")
    print(json.dumps(answer), flush=True)
